"""The code that runs in the sandbox, by the sandbox's own interpreter: standard library only, Python 3.9 or later."""
