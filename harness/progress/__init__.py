"""Events of a command while it works (`watching`), and the display of a run's progress, on a terminal or in a log.

Entry points are `display.ProgressDisplay`, and `watching.Collecting` from Python; only the command line and
`harness.api` use them. `lines` makes the text, `display` draws it on the screen.
"""
