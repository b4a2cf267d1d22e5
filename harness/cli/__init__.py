"""The command line: one file per command, with its arguments and exit codes; the packages below do the work.

No module imports this package: `harness.__main__` starts `main`, and tests call the program.
"""
