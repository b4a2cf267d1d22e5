"""The grammar: from the characters of an answer to a tree of numbers, expressions and structures, or `Unreadable`.

Enter by `parse.parse`; who works on trees imports `tree`, who compares units imports `units`.
"""
