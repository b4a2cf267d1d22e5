"""Answers as text: boxes and the grammar that reads an answer into a tree. Pure; knows no question and no response.

`benchmarks` reads references here and `grading` reads answers, so that both are read alike.
"""
