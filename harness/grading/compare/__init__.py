"""Are two answers the same: texts, then trees, from cheap to dear.

Enter by `equivalence.equal`; `canonical.canonical` gives the form by which an answer votes.
"""
