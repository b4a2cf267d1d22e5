"""The embedded llama.cpp server with its program, its weights (fetched by name) and an OpenMP runtime.

`engines.llama_cpp` and the commands that fetch weights enter here; the program itself imports nothing of this package.
"""
