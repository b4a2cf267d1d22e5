"""Experiment trackers: a file for each, named as its package and as the extra that installs it; its `TRACKER` sends a
run."""
