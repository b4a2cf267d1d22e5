"""Compares percentiles of the time to the first token and per token between a load curve and a plain aiohttp client.

    python -m bench.load [BASE_URL MODEL]      # default: a fake server with fixed pauses

Both send streamed chat requests to the same server in turn, with the same number in flight; prints p50 and p90 in ms.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import numpy as np

import harness
from harness.runs import RunFolder, read_samples
from harness.scoring.load import load_point
from harness.testing import END, HEAD, FakeServer, Pause, Request, Said, Step, chunk, serving

N, IN_FLIGHT, TOKENS, FIRST_S, GAP_S = 96, 8, 40, 0.2, 0.02


def paced(request: Request) -> Iterator[Step]:
    """A reply with fixed pauses, longer for every fourth prompt."""
    slow = 1 if int(request.json["messages"][-1]["content"].split()[-1]) % 4 else 1.5
    yield HEAD
    yield Pause(FIRST_S * slow)
    for event in Said("1" * TOKENS, TOKENS).events():
        yield chunk(event)
        yield Pause(GAP_S * slow)
    yield END


async def plainly(base_url: str, model: str, prompts: list[str]) -> tuple[list[float], list[float]]:
    """Times to the first token, and per token after it, of requests sent with aiohttp, in seconds."""
    room, first, gaps = asyncio.Semaphore(IN_FLIGHT), list[float](), list[float]()

    async def ask(session: aiohttp.ClientSession, prompt: str) -> None:
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS}
        body |= {"stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True, "temperature": 0.0}
        async with room:
            began, times = time.perf_counter(), list[float]()
            async with session.post(f"{base_url}/chat/completions", json=body) as reply:
                async for line in reply.content:
                    if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
                        times += [time.perf_counter()] if choices[0]["delta"].get("content") else []
        first.append(times[0] - began)
        gaps.append((times[-1] - times[0]) / (TOKENS - 1))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(ask(session, prompt) for prompt in prompts))
    return first, gaps


def compare(base_url: str, model: str) -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as folder:
        prompts = [f"Tell me about {n + 100}" for n in range(N)]
        rows = [json.dumps({"question": prompt, "answer": "1"}) for prompt in prompts]
        Path(folder, "q.jsonl").write_text("\n".join(rows), encoding="utf-8")
        settings = {"temperature": 0.0, "max_tokens": TOKENS, "concurrency": IN_FLIGHT, "canary": False}
        extra = {"extra_body": {"ignore_eos": True}, "prompt": "none"}
        harness.run(data=f"{folder}/q.jsonl", base_url=base_url, model=model, out=f"{folder}/r", **settings, **extra)
        point = load_point(read_samples(RunFolder(f"{folder}/r").benchmark("q")), IN_FLIGHT)
        foreign = asyncio.run(plainly(base_url, model, prompts))
        assert point is not None
        for name, ours, theirs in zip(
            ("first token", "time per token"), (point.first_token, point.time_per_token), foreign, strict=True
        ):
            assert ours is not None
            for p, own in ((50, ours.p50), (90, ours.p90)):
                other = float(np.quantile(theirs, p / 100, method="inverted_cdf"))
                print(
                    f"{name} p{p}: {1000 * own:.2f} ms, aiohttp {1000 * other:.2f} ms, {100 * (own / other - 1):+.1f}%"
                )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        compare(sys.argv[1], sys.argv[2])
    else:
        with FakeServer(serving(paced)) as fake:
            compare(fake.base_url, "test-model")
