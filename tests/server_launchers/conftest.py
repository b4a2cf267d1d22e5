"""Fixtures for the launchers."""

from tests.embedded import embedded_server, private_state, smollm2, thinking_server

__all__ = ["embedded_server", "private_state", "smollm2", "thinking_server"]
