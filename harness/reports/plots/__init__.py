"""Plots: each is its data and a Vega-Lite specification; `draw` makes pictures of them where `vl-convert` is installed.

The modules are named for what they show. Only `harness.reports` enters.
"""
