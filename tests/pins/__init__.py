"""Pins: what each command and each function of `harness` sends, stores and prints, held byte for byte.

A scene drives the product through its public doors only (the command line, the functions of `harness`, files, HTTP)
against a small server that records what reaches it; `golden/` holds what the code of 2026-11-21 did. Whoever
changes something on purpose writes the golden files anew: `python -m tests.pins.write`, whose first lines say when that
is right.
"""
