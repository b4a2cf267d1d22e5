"""Whole runs played from a seed: the real dispatcher, in a world of virtual time where everything can go wrong."""
