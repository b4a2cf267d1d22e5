"""The APIs by the value of the option `api`."""

from __future__ import annotations

from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.apis.completions import COMPLETIONS
from harness.client.apis.messages import MESSAGES
from harness.client.apis.responses import RESPONSES
from harness.core.errors import UsageError
from harness.core.sanitize import visible

APIS = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)

WITH_TOOLS = " or ".join(api.name for api in APIS if api.tools is not None)
"""The APIs that can offer tools, for messages."""


def api_of(name: str) -> API:
    """The API of this name. Raises `UsageError` for an unknown name, which a later version may have recorded."""
    for api in APIS:
        if api.name == name:
            return api
    raise UsageError(f"expected {' or '.join(api.name for api in APIS)}", field="api", value=visible(str(name), 60))
