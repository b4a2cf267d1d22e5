"""The wires by the word of the option `api`."""

from __future__ import annotations

from harness.client.wires.chat import CHAT
from harness.client.wires.completions import COMPLETIONS
from harness.client.wires.messages import MESSAGES
from harness.client.wires.responses import RESPONSES
from harness.client.wires.wire import Wire
from harness.core.errors import UsageError
from harness.core.inert import visible

WIRES = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)


def wire_of(api: str) -> Wire:
    """The wire of an API. Raises `UsageError` for another word, which a run of a later version may have recorded."""
    for wire in WIRES:
        if wire.api == api:
            return wire
    raise UsageError(f"expected {' or '.join(wire.api for wire in WIRES)}", field="api", value=visible(str(api), 60))
