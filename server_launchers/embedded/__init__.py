"""The embedded llama.cpp server: its program, its weights (fetched by name) and an OpenMP runtime.

`engines.llama_cpp` and the commands that fetch weights use this package; the program itself imports nothing from it.
"""
