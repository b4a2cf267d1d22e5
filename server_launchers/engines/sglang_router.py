"""SGLang replicas behind its router, at one address.

    python -m server_launchers.engines.sglang_router Qwen/QwQ-32B --dp 4

The same as `sglang --dp-mode router`: replicas are started with their own devices, the router (`routers`) in front.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from server_launchers.foreground import main

    sys.exit(main("sglang_router"))
