"""Reading a benchmark's rows from its source: a file, the Hugging Face hub, a URL, a generator of questions.

`chooser` picks the module by the card's source. `tables` reads any file of rows, also for `harness.foreign`.
"""
