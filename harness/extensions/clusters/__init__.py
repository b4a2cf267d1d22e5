"""Kinds of clusters: a package for each, whose `CLUSTER` runs, grades and serves there."""
