"""Pins: what each command and each function of `harness` sends, stores, decides and counts, as data.

A scene (`scenes/`) drives the product through its public doors only: the command line, the functions of `harness`,
files, HTTP. It plays against a small server that records what reaches it. `data/SCENE.json` holds what came of it by
meaning: requests, samples, verdicts, numbers, exit codes, and warnings and errors by a key (`notes.toml`), no prose.
So a refactoring or another wording changes no data; where the product spells a record otherwise, `reading.py` changes.
"""
