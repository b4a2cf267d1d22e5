"""What the command line and Python both call: a module or a room for each verb. No verb names a flag or prints."""
