"""One file a job scheduler: its `SCHEDULER` writes the script of a job and submits it."""
