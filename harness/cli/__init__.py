"""The command line, with one module per command for its arguments and exit codes; lower-level packages do the work.

No module imports this package: `harness.__main__` calls `main`, and the tests run the program.
"""
