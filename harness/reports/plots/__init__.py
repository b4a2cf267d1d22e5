"""Plots: each is data with marks; `Plot.svg` draws them, `draw` writes files.

Each module is named after what it shows.
"""
