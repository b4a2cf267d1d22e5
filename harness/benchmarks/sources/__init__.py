"""Read a benchmark's rows from its source: a file, the Hugging Face hub, a URL, or a question generator.

`readers` selects the module for the card's source. `tables` reads any file of rows, including those for
`harness.foreign`.
"""
