"""The embedded llama.cpp server with what it needs: its program, weights fetched by name, an OpenMP runtime.

Entered by `engines.llama_cpp` and by commands that fetch weights; the program itself imports nothing of ours.
"""
