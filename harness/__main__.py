"""`python -m harness` is the command `harness`."""

from harness.cli.main import main

main()
