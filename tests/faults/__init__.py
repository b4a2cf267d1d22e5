"""A server that misbehaves to the byte, for every test that needs one."""
