"""Job schedulers: a file for each, whose `SCHEDULER` writes the script of a job and submits it."""
