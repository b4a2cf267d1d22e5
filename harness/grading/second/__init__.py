"""Second opinions on grades: another library in a process of its own, or a judge model.

Enter from `verbs` and `cli`. This room words the requests to a judge, reads its replies and counts them; `verbs.judge`
sends them.
"""
