"""Plots consist of data and marks; `Plot.svg` draws them, and `plot.write_plots` writes files.

Each module is named after what it shows.
"""
