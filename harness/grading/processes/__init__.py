"""Worker processes that decide about hostile answers under a deadline and a memory limit.

Enter by `pool`; the only room of grading that starts processes, besides `second`.
"""
