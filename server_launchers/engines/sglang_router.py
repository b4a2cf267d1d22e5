"""SGLang replicas behind SGLang's router, also for a single replica.

The router lists its workers' models as "unknown" unless they are SGLang servers (see `routers`).
Seen on sglang_router 0.3.2 and vllm-router 0.1.17.
"""

from __future__ import annotations

from server_launchers.engines.dialect import Dialect
from server_launchers.engines.sglang import DIALECT, SGLang


class SGLangRouter(SGLang):
    """SGLang replicas and the router before them."""

    summary = "SGLang replicas behind its router."
    takes = SGLang.takes - {"dp_mode"}
    spreads = False
    always_routed = True
    dialect = Dialect(
        name="router",
        source="sglang_router 0.3.2 and vllm-router 0.1.17: the pages of SGLang, seen on both",
        hides_behind="unknown",
        facts=DIALECT.facts,
        context=DIALECT.context,
    )


ENGINE = SGLangRouter()
