"""Certificate authorities of one's own."""

from __future__ import annotations

import ssl
from pathlib import Path

from harness.core.errors import UsageError


def trusting(ca_file: Path) -> ssl.SSLContext:
    """TLS for a client that trusts the authorities in this PEM file only. Raises `UsageError`."""
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{error}; expected a PEM file of certificates", field="ca_file", value=ca_file) from error
