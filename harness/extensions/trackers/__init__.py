"""One file an experiment tracker, named as its package and as the extra that installs it: its `TRACKER` sends a run."""
