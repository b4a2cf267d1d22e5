"""Shows the progress of a run: several lines kept up to date on a terminal, single lines in a log.

Enter by `display.ProgressDisplay`, or `collecting.Collecting` from Python. Only the command line and `harness.api` do.
`lines` makes the text, `display` puts it on the screen.
"""
