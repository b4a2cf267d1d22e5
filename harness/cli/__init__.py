"""The command line: one file a command, arguments and exit codes; the work is done in the packages below."""
