"""Events of a running command (`events`), and the display of a run's progress, on a terminal or in a log.

The entry points are `display.ProgressDisplay` and, from Python, `events.Collecting`; only the command line and
`harness.api` use them. `lines` makes the text, `display` draws it on the screen.
"""
