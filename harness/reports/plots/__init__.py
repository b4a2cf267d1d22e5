"""Plots: each is data with marks; `Plot.svg` draws them, `plot.write_plots` writes files.

Each module is named after what it shows.
"""
