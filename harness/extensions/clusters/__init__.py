"""Cluster kinds: one package per kind, whose `CLUSTER` runs, grades and serves on that cluster."""
