"""One module a program that measures, named as the program is: adding one is adding a file here."""
