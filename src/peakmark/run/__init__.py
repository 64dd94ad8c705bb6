"""One cell measured: the program run, bounded and watched, alone or with a server, and other load
meanwhile.
"""
