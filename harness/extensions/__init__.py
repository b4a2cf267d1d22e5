"""What stands beside the road of start, run, score, report: the core imports nothing of it."""
