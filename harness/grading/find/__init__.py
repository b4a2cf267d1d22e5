"""Where the answer stands in a response: behind the reasoning, in the last box, phrase or formula.

Enter by `verdict`; pure, linear in the text, parses nothing.
"""
