"""Plug-ins for reasoning-harness: a benchmark of palindromes, a server that answers it, a grader and an exporter."""
