"""All options of a run, a judge, a scoring and the other commands; each option is declared once, here.

A file holds the options of one subject, and the classes of the commands with these options, whose docstrings are the
commands' help. `harness.core.options` turns a declaration into a flag, a keyword, a key of a file and a check;
`harness.options.commands` lists the commands. All packages above may import this one; it imports nothing slow.
"""
