"""Events of a command while it works (`watching`), and the display of a run's progress, on a terminal or in a log.

Enter by `display.ProgressDisplay`, or `watching.Collecting` from Python. Only the command line and `harness.api` do.
`lines` makes the text, `display` puts it on the screen.
"""
