"""Answers as text: where they begin, their boxes, and the grammar that parses an answer into a tree. Pure.

`benchmarks` parses references and `grading` parses answers with this package, so that both are read the same way.
"""
