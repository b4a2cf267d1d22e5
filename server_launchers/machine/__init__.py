"""What this machine has and says: its accelerators, an engine's environment and version, the options that it knows.

Entered by engines, by `replicas` and by the supervisor; knows no engine by its name, and starts no server.
"""
