"""What a run under way looks like: several lines kept up to date on a terminal and in a notebook, one in a log.

Enter by `display.ProgressDisplay`, or `collecting.Collecting` from Python; the doors do, and nothing below them.
`lines` has the words alone.
"""
