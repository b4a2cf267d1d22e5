"""Experiment trackers: one module each, named as the package and as the extra that installs it. Its `TRACKER` sends a
scored run, and names the variables that say where."""
