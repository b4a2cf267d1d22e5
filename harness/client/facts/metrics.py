"""Reading a server's metrics page in the Prometheus text format: only the wanted names, whatever else it contains.

`parse` is pure and accepts any text. A value that is missing, not a number, or contradicted is unknown, never 0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from urllib.parse import urljoin, urlsplit, urlunsplit

import httpx

from harness.client.address.endpoint import Endpoint, quote_safely, redact, secrets_of
from harness.client.protocol.failures import error_words, unpacked
from harness.core import http_get
from harness.core.sanitize import visible
from harness.runs.engine_pages import EnginePage
from server_launchers.engines.metrics import ENGINES

PATHS = ("/metrics", "/engine_metrics")
"""Paths of the page below a server's root; the second is that of SGLang's router and covers all of its workers."""

PAGE_S = 5.0
"""Seconds within which a page must have been received."""

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""Longest page that is read; that of a vLLM server with 100 engines has 3.4 MB."""

MAX_SAMPLES = 5_000
"""Largest number of wanted samples on a page; 100 engines have 1,600."""

MAX_VALUE = 2.0**53
"""Largest value that is used: a counter beyond it can no longer grow by one."""

MAX_LABELS_CHARS = 500
"""Longest labels of a sample, in characters, and longest name of a model."""

_NAMES = sorted({name for quantities in ENGINES.values() for names in quantities.values() for name in names.split()})
_SAMPLE = re.compile(
    rf"^(?:ray_)?({'|'.join(ENGINES)})[:_]({'|'.join(_NAMES)})(_total|_created)?"
    r'(?:\{((?>(?:[^"}\n]|"(?>(?:[^"\\\n]|\\.)*)")*))\})?[ \t]+([^\s#]+)',
    re.MULTILINE,
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)[ \t]*=[ \t]*"((?>(?:[^"\\]|\\.)*))"')
_ESCAPE = re.compile(r"\\(.)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PROCESS_START = re.compile(r"^process_start_time_seconds[ \t]+(\S+)", re.MULTILINE)

_RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")
"""Labels of SGLang processes that share the work on one request: only the process of the lowest rank is counted."""

_Samples = dict[tuple[str, str], dict[tuple[tuple[str, str], ...], float | None]]
"""(model, name) → labels, sorted → value."""


def read(client: httpx.Client, endpoint: Endpoint) -> EnginePage:
    """What the endpoint's page reports now; `why` says why it has no metrics. Blocks; server errors do not raise."""
    secrets, why = secrets_of(endpoint), ""
    for path in PATHS:
        try:
            url = endpoint.over_http(endpoint.root + path)
            page = _get(client, url)
            body = unpacked(page.body, page.headers, MAX_PAGE_BYTES + 1)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
            return EnginePage(why=why or f"no answer ({quote_safely(str(error), secrets) or type(error).__name__})")
        if page.status != 200:
            words = f"redirects to {page.location}" if page.location else error_words(body)
            said = f": {quote_safely(words, secrets)}" if words and page.status != 404 else ""
            why = why or f"HTTP {page.status}{said}"
        elif not page.whole or len(body) > MAX_PAGE_BYTES:
            return EnginePage(why=f"the page exceeds {MAX_PAGE_BYTES >> 20} MiB or takes more than {PAGE_S:g} s")
        else:
            started = page.headers.get("process-start-time-unix", "")
            if not (metrics := parse(redact(body.decode("utf-8", "replace"), secrets), started)).why:
                return metrics
            why = why or metrics.why
    return EnginePage(why=why)


def _get(client: httpx.Client, url: str) -> http_get.Page:
    """The page at `url`. Follows one redirect to another path of the host, at the same address, such as `/metrics/`."""
    ask = partial(http_get.get, client, max_bytes=MAX_PAGE_BYTES, body_s=PAGE_S, transient=())
    page, asked = ask(url), urlsplit(url)
    target = urlsplit(urljoin(url, page.location))
    same_host = page.location and target.hostname == asked.hostname
    return ask(urlunsplit(asked._replace(path=target.path, query=target.query))) if same_host else page


def parse(text: str, started: str = "") -> EnginePage:
    """The wanted quantities of a page. started: what its headers state about the server's start."""
    text = text[: text.rfind("\n") + 1]  # a whole page ends with a newline: drop what follows the last one
    engine, created = "", list[float]()
    samples: _Samples = defaultdict(dict)
    n = 0
    for match in _SAMPLE.finditer(text):
        prefix, name, ending, labels_text, digits = match.groups()
        engine = engine or prefix
        value = float(digits) if _NUMBER.fullmatch(digits) and abs(float(digits)) < MAX_VALUE else None
        if ending == "_created" and value is not None:
            created.append(value)
        if ending == "_created" or prefix != engine:
            continue
        if (n := n + 1) > MAX_SAMPLES or len(labels_text or "") > MAX_LABELS_CHARS:
            return EnginePage(why="the page has more series than any known engine produces")
        labels = dict(_LABEL.findall(labels_text or ""))
        model = visible(_ESCAPE.sub(_unescaped, labels.pop("model_name", "")), MAX_LABELS_CHARS)
        series, key = samples[model, name], tuple(sorted(labels.items()))
        series[key] = value if series.get(key, value) == value else None
    if not engine:
        return EnginePage(why="the page has no engine metrics")
    models: dict[str, dict[str, dict[str, float | None]]] = defaultdict(dict)
    for model in {model for model, _ in samples}:
        for quantity, names in ENGINES[engine].items():
            series = next((samples[model, name] for name in names.split() if (model, name) in samples), {})
            if counted := _lowest_ranks(series):
                models[model][quantity] = counted
    start = [*([min(created)] if created else []), *_PROCESS_START.findall(text)[:1], *([started] if started else [])]
    return EnginePage(engine, dict(models), visible(" ".join(map(str, start)), 80))


def _unescaped(escape: re.Match[str]) -> str:
    """The character that an escape in a label represents."""
    return "\n" if escape[1] == "n" else escape[1]


def _lowest_ranks(series: dict[tuple[tuple[str, str], ...], float | None]) -> dict[str, float | None]:
    """The series that add up to the server's total: one per group of ranks that share the work, and none of a single
    priority if there is one of all priorities.
    """
    best: dict[str, tuple[list[int], float | None]] = {}
    total_of_priorities = any(dict(key).get("priority") == "" for key in series)
    for key, value in series.items():
        labels = dict(key)
        if labels.pop("priority", "") and total_of_priorities:
            continue
        ranks = [int(rank) if (rank := labels.pop(name, "0")).isdecimal() else 0 for name in _RANKS]
        group = ",".join(f'{name}="{text}"' for name, text in labels.items())
        if group not in best or ranks < best[group][0]:
            best[group] = (ranks, value)
    return {visible(group, 2 * MAX_LABELS_CHARS): value for group, (_, value) in best.items()}
