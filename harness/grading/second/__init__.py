"""Second opinions on grades: another library in a separate process, or a judge model.

Enter from `commands` and `cli`. This package writes the requests to a judge and reads the replies; `judges.judge` sends
the requests.
"""
