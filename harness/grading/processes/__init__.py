"""Worker processes that decide hostile answers under a deadline and a memory limit.

The entry point is `pool`; `worker` is the program that the processes run. Among the other grading packages, only
`second` starts processes.
"""
