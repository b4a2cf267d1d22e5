"""Plots: each is data with a Vega-Lite specification; `draw` makes pictures where `vl-convert` is installed.

Each module is named after what it shows. Only modules of `harness.reports` import this package.
"""
