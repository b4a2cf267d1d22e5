"""What a launcher refuses or fails at, as one sentence for the person at the keyboard."""

from __future__ import annotations


class LaunchError(Exception):
    """A server could not be started, found, made ready or stopped; the text says why and what to do."""


class DownloadError(LaunchError):
    """Model weights could not be had: no index reachable, checksum differs, no room on the disk."""
