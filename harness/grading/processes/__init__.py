"""Worker processes that decide hostile answers under a deadline and a memory limit.

Enter by `pool`; `worker` is the program of the processes. Besides `second`, no other room of grading starts a process.
"""
