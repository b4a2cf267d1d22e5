"""The code that the sandbox's own interpreter runs in the sandbox: standard library only, Python 3.9 or later."""
