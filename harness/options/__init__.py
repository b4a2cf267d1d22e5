"""All options of runs, judges, scoring and the other commands; each option is declared once, here.

Each file contains the options for one subject and the classes of the commands with these options, whose docstrings are
the commands' help. `harness.core.options` turns a declaration into a flag, a keyword, a key in a file and a check;
`harness.options.commands` lists the commands. All higher packages may import this one; it imports nothing slow.
"""
