"""Answers as text: where they begin, boxes, and the grammar that reads an answer into a tree. Pure.

`benchmarks` reads references here and `grading` reads answers, so that both are read alike.
"""
