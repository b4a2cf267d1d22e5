"""SGLang replicas behind SGLang's router, also for a single replica.

The router lists its workers' models as "unknown" unless they are SGLang servers (see `routers`), and has a page that
names its workers. Seen on sglang_router 0.3.2 and vllm-router 0.1.17.
"""

from __future__ import annotations

from msgspec.structs import replace

from server_launchers.engines import sglang
from server_launchers.engines.dialect import Dialect

ENGINE = replace(
    sglang.ENGINE,
    summary="SGLang replicas behind its router.",
    launcher=replace(sglang.LAUNCHER, takes=sglang.TAKES - {"dp_mode"}, spreads=False, always_routed=True),
    dialect=Dialect(
        name="router",
        source="sglang_router 0.3.2 and vllm-router 0.1.17: /workers, seen on both",
        hides_behind="unknown",
        workers="/workers",
        facts=sglang.DIALECT.facts,
        context=sglang.DIALECT.context,
    ),
)
