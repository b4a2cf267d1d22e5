"""Second opinions on what the rules said: another library, or a judge model.

Enter from `verbs` and `cli`; who asks the model stands there, this room only words and counts.
"""
