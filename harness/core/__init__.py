"""Records, identity, limits and exceptions that every other package shares. No I/O but `files`."""
