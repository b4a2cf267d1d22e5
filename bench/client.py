"""Measures the client's CPU time per streamed token and per request, compared with aiohttp, the openai SDK, and others,
and checks every reply.

    python bench/client.py [--repeats 3] [--only http,aiohttp-raw] [--cases paced,burst]

Each client runs in a separate process against `bench/fake_server.py`. The clients take turns, so that a busy machine
affects all of them equally: the ratios matter, not the microseconds. A reply whose text does not match the server's
checksum makes the run fail. Linux only (epoll).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
CASES = {
    # name: (model parameters, requests, in flight, what one unit is)
    "paced": ("m,n=150,d=20", 512, 512, "token"),
    "reasoning": ("m,n=150,d=20,r=50", 512, 512, "token"),
    "burst": ("m,n=2000", 256, 64, "token"),
    "short": ("m,n=2", 10_000, 64, "request"),
    "many": ("m,n=40,d=80", 2000, 2000, "token"),
    "flood": ("m,n=8,d=400", 10_000, 10_000, "request"),
}
MEANING = {
    "paced": "512 streams, 20 ms a token",
    "reasoning": "the same, half of it reasoning",
    "burst": "64 streams, server flat out",
    "short": "replies of 2 tokens",
    "many": "2,000 streams, 80 ms a token",
    "flood": "10,000 in flight, 8 tokens each, connects included",
}
SLOW = {"openai-sdk": 16, "httpx-raw": 16}
"""Slow client → divisor of its number of requests in cases where the server replies as fast as it can."""

HTTPX_STREAMS = 64
"""Largest number of streams for httpx, which searches its whole pool for each request."""

PEERS = ("http", "aiohttp-raw", "openai-sdk", "httpx-raw")

UNFIT = {
    "openai-sdk": ("many", "flood"),  # minutes of CPU
    "httpx-raw": ("many", "flood"),
}
"""Client → cases from which it is excluded."""

_decode = msgspec.json.Decoder().decode
Ask = Callable[[int], Awaitable[tuple[str, str | None, int | None]]]
"""A function that sends one request: seed → (text, fingerprint, completion tokens) of the reply."""


async def ours(name: str, port: int, model: str) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """A client: the harness's own transport with this name."""
    from harness.client.address.endpoint import Endpoint
    from harness.client.interface import Deadlines, Post
    from harness.client.request_fields import RequestTemplate
    from harness.client.transport import open_transport
    from harness.core.records import Message, Question

    transport = open_transport(name)  # type: ignore[arg-type]
    endpoint, deadlines = Endpoint.parse(f"http://127.0.0.1:{port}"), Deadlines()
    template = RequestTemplate(model=model)
    question = Question(
        benchmark="b",
        question_id="q",
        messages=(Message("user", "hi"),),
        references=(),
        kind="text",
        row_digest="",
        prompt_digest="",
    )

    async def ask(seed: int) -> tuple[str, str | None, int | None]:
        body = template.body(question, seed)
        reply = await transport.complete(Post(endpoint, template.spelling.api, body, deadlines, 1 << 30))
        return (reply.reasoning or "") + (reply.text or ""), reply.fingerprint, reply.usage.completion_tokens

    return ask, transport.close


async def read_stream(body: AsyncIterator[bytes]) -> tuple[str, str | None, int | None]:
    """Read a whole stream with as little code as possible, with a time stamp for each token; return (text, fingerprint,
    completion tokens).
    """
    texts, stamps, fingerprint, tokens, rest = [], [], None, None, b""
    async for data in body:
        events = (rest + data).split(b"\n\n")
        rest = events.pop()
        for event in events:
            if event[:6] != b"data: " or event[6:] == b"[DONE]":
                continue
            value = _decode(event[6:])
            if value["choices"]:
                choice = value["choices"][0]
                piece = choice["delta"].get("content") or choice["delta"].get("reasoning")
                if piece:
                    texts.append(piece)
                    stamps.append(time.perf_counter_ns())
                if choice["finish_reason"]:
                    fingerprint = value.get("system_fingerprint")
            elif "usage" in value:
                tokens = value["usage"]["completion_tokens"]
    return "".join(texts), fingerprint, tokens


async def aiohttp_raw(port: int, model: str) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """A client: aiohttp with `read_stream`."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))

    async def ask(seed: int) -> tuple[str, str | None, int | None]:
        body = msgspec.json.encode(request(model, seed))
        async with session.post(
            f"http://127.0.0.1:{port}/v1/chat/completions", data=body, headers={"Content-Type": "application/json"}
        ) as response:
            return await read_stream(response.content.iter_any())

    return ask, session.close


async def httpx_raw(port: int, model: str) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """A client: httpx with `read_stream`."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(limits=limits, timeout=None, trust_env=False)

    async def ask(seed: int) -> tuple[str, str | None, int | None]:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with client.stream("POST", url, json=request(model, seed)) as response:
            return await read_stream(response.aiter_raw())

    return ask, client.aclose


async def openai_sdk(port: int, model: str) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """A client: the openai SDK, used as its documentation shows."""
    import openai

    client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", max_retries=0, timeout=None)

    async def ask(seed: int) -> tuple[str, str | None, int | None]:
        texts, stamps, fingerprint, tokens = [], [], None, None
        async for chunk in await client.chat.completions.create(**request(model, seed)):
            if chunk.choices:
                delta = chunk.choices[0].delta
                piece = delta.content or getattr(delta, "reasoning", None)
                if piece:
                    texts.append(piece)
                    stamps.append(time.perf_counter_ns())
                if chunk.choices[0].finish_reason:
                    fingerprint = chunk.system_fingerprint
            elif chunk.usage:
                tokens = chunk.usage.completion_tokens
        return "".join(texts), fingerprint, tokens

    return ask, client.close


def request(model: str, seed: int) -> dict[str, Any]:
    """The body of the request that all clients send."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": "hi"}],
        "seed": seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def work(name: str, port: int, model: str, requests: int, in_flight: int) -> dict[str, Any]:
    """Send `requests` requests with one client, `in_flight` at a time; return CPU seconds, tokens, and the number of
    broken replies.
    """
    if name == "aiohttp-raw":
        ask, close = await aiohttp_raw(port, model)
    elif name == "openai-sdk":
        ask, close = await openai_sdk(port, model)
    elif name == "httpx-raw":
        ask, close = await httpx_raw(port, model)
        in_flight = min(in_flight, HTTPX_STREAMS)
    else:
        ask, close = await ours(name, port, model)
    done = tokens = broken = 0
    seeds = iter(range(requests))

    async def worker() -> None:
        """Send requests one after another until all seeds are used, and check each reply."""
        nonlocal done, tokens, broken
        for seed in seeds:
            text, fingerprint, stated = await ask(seed)
            done += 1
            tokens += stated or 0
            broken += fingerprint != f"crc-{zlib.crc32(text.encode()):08x}"

    await ask(0)  # imports and the first connection are not measured
    before, began = cpu(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    spent, wall = cpu() - before, time.perf_counter() - began
    await close()
    return {"cpu": spent, "wall": wall, "done": done, "tokens": tokens, "broken": broken}


def cpu() -> float:
    """CPU seconds of this process, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(name: str, case: str, port: int) -> None:
    """Measure one client in one case, in this process, and print a line of JSON."""
    from harness.client.loop import new_event_loop

    model, _, in_flight, _ = CASES[case]
    requests = n_requests(name, case)
    loop = new_event_loop if name == "http" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        sys.stdout.write(json.dumps(runner.run(work(name, port, model, requests, in_flight))) + "\n")


def n_requests(name: str, case: str) -> int:
    """Return the number of requests that a client makes in a case."""
    model, requests, _, _ = CASES[case]
    if name == "httpx-raw":
        requests = min(requests, 16 * HTTPX_STREAMS if ",d=" not in model else HTTPX_STREAMS)
    return requests // (1 if ",d=" in model else SLOW.get(name, 1))


def _some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return an argument type: a comma-separated list of known names."""

    def names(text: str) -> list[str]:
        """The names in the text. Raises `argparse.ArgumentTypeError` for an unknown one."""
        typed = text.split(",")
        if unknown := [name for name in typed if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return typed

    return names


def main() -> int:
    """Run all clients in all cases in turn, and print the table. Returns 1 if any reply was broken, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", type=_some_of(PEERS), default=[*PEERS], help=f"clients, by comma: {', '.join(PEERS)}")
    parser.add_argument("--cases", type=_some_of(CASES), default=list(CASES))
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, case, port = arguments.measure
        measure(name, case, int(port))
        return 0
    peers, cases = arguments.only, arguments.cases
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in range(arguments.repeats):
        for case in cases:
            for name in peers:
                if case in UNFIT.get(name, ()):
                    continue
                with fresh_server() as port:
                    command = [sys.executable, "-m", "bench.client", "--measure", name, case, port]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=pin_client)
                results.setdefault((case, name), []).append(json.loads(done.stdout))
    broken = show(results, cases, peers)
    return 1 if broken else 0


@contextmanager
def fresh_server() -> Iterator[str]:
    """Start a server on a separate core and yield its port. Each run gets a new server, because thousands of sockets
    that the previous client left in TIME_WAIT would double the cost of a connection.
    """
    server = subprocess.Popen([sys.executable, HERE / "fake_server.py"], stdout=subprocess.PIPE, text=True)
    try:
        if len(os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(server.pid, {min(os.sched_getaffinity(0))})
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


def pin_client() -> None:
    """Pin this process, the client, to one core; the server uses another core."""
    if len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def show(results: dict[tuple[str, str], list[dict[str, Any]]], cases: list[str], peers: list[str]) -> int:
    """Print the table of medians; return how many replies were broken."""
    references = [name for name in ("aiohttp-raw", "openai-sdk") if name in peers]
    table = Table(title="CPU of the client: median of the repeats; ratios to others of the same repeat")
    for column in ("case", "client", "µs", "per", *(f"/ {name}" for name in references), "wall s", "broken"):
        table.add_column(column, justify="left" if column in ("case", "client", "per") else "right")
    broken = 0
    for case in cases:
        unit = CASES[case][3]
        present = [name for name in peers if (case, name) in results]
        costs = {name: [cost(run, unit) for run in results[case, name]] for name in present}
        for name in present:
            runs = results[case, name]
            bad = sum(run["broken"] + n_requests(name, case) - run["done"] for run in runs)
            broken += bad
            ratios = [
                f"{median(a / b for a, b in zip(costs[name], costs[peer], strict=True)):.2f}" if peer in costs else "-"
                for peer in references
            ]
            wall = f"{median(run['wall'] for run in runs):.1f}"
            label = f"{case} ({MEANING[case]})" if name == present[0] else ""
            table.add_row(label, name, f"{median(costs[name]):.2f}", unit, *ratios, wall, str(bad))
    Console(width=max(Console().width, 120)).print(table)
    return broken


def cost(run: dict[str, Any], unit: str) -> float:
    """CPU microseconds per token or per request."""
    return float(run["cpu"] / (run["tokens"] if unit == "token" else run["done"]) * 1e6)


if __name__ == "__main__":
    sys.exit(main())
