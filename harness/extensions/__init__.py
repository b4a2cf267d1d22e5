"""What stands beside the road of start, run, score, report, decide. Nothing imports it: `harness.core.plugins` finds a
module by its place, `<kind>s/<name>.py`, and takes the object that is named for the kind."""
