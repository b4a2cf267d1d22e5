"""Experiment trackers: one module each, named after the package and the extra that installs it. Its `TRACKER` sends a
scored run, and lists the variables that set the destination."""
