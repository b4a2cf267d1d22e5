"""Worker processes that decide hostile answers under a deadline and a memory limit.

Enter by `pool`; `worker` is the program that the processes run. Of the other packages of grading, only `second`
starts processes.
"""
