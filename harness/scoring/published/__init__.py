"""Scores that papers, repositories and other tools report, with their source.

`results/published/` holds the shipped scores. Enter by `loading.load_published` and `loading.matching`. All code that
compares or shows published scores may enter.
"""
