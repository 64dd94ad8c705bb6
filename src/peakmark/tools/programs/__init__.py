"""One module for each program that measures, with the program's name. A new module adds a program."""
