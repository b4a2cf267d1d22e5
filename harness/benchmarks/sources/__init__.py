"""Rows from where a card says: files, the Hugging Face hub, a fixed address, a generator.

Entered by `chooser`; `tables` reads any file of rows, also for `harness.foreign`.
"""
