"""What `--json` prints, where it is no value that a room below has already: a record of each, from which its schema
is made. Commands fill them in; nothing is computed here.
"""
