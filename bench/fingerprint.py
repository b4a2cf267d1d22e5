"""Measures how far a run's fingerprint (first words of greedy replies) changes while the server has other work; see
docs/provenance.md.

    python bench/fingerprint.py --base-url URL --engine vllm --model NAME [--repeats 20] [--load 32]

The fingerprint is asked as a run asks it, alone and with so many sampled requests kept in flight, and compared with the
first one that was asked alone. Tokens are those into which the server itself divides the beginnings (`/tokenize`). Then
the same prompts are asked for 64 tokens each at temperature 1 with a seed: one by one, one by one again, all at once
beside the load. What `--deterministic` promises is that all are equal.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Deadlines
from harness.client.protocol.reply import RequestFailed
from harness.client.transport import open_transport
from harness.generation import fingerprint
from harness.generation.settings import RunSettings
from harness.scoring.stats import wilson
from server_launchers.engines import table as engines

PLACES = ("a harbour", "the moon", "a library", "a mine", "a bakery", "the desert", "a school", "an orchard")


@contextlib.contextmanager
def busy(endpoint: Endpoint, model: str, n: int) -> Iterator[None]:
    """A context manager that keeps `n` sampled requests in flight."""
    over, begun = threading.Event(), threading.Event()

    async def one_request(transport, number: int) -> None:
        for turn in itertools.count():
            words = f"Write story {number}.{turn} about {PLACES[(number + turn) % len(PLACES)]}."
            body = {
                "model": model,
                "messages": [{"role": "user", "content": words}],
                "max_tokens": 64 + 8 * (number % 9),  # they end at different times
                "temperature": 1.0,
                "ignore_eos": True,
                "stream": True,
            }
            with contextlib.suppress(RequestFailed):
                await transport.complete(
                    endpoint, "/chat/completions", json.dumps(body).encode(), Deadlines(first_token=300.0), 1 << 24
                )

    async def all_of_them() -> None:
        transport = open_transport()
        flying = [asyncio.ensure_future(one_request(transport, number)) for number in range(n)]
        begun.set()
        while not over.is_set():
            await asyncio.sleep(0.1)
        for each in flying:
            each.cancel()
        await asyncio.gather(*flying, return_exceptions=True)
        await transport.close()

    thread = threading.Thread(target=lambda: asyncio.run(all_of_them()))
    thread.start()
    begun.wait()
    time.sleep(5)
    try:
        yield
    finally:
        over.set()
        thread.join()


def agreeing(first: list[int], second: list[int]) -> int:
    """Number of tokens that both lists begin with in common."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def sampled(endpoint: Endpoint, model: str, at_once: int) -> list[str]:
    """Ask for a longer answer to each prompt, at temperature 1 with a seed; `at_once` requests in flight."""

    def reply_to(text: str) -> str:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 64,
            "temperature": 1.0,
            "seed": 7,
            "ignore_eos": True,
        }
        answer = httpx.post(f"{endpoint.base_url}/chat/completions", json=body, timeout=600, trust_env=False)
        return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(reply_to, fingerprint.PROMPTS))


def main() -> None:
    """Print a line for each repeat, and then a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument(
        "--engine", required=True, choices=[dialect.name for dialect in engines.dialects() if dialect.tokens]
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--load", type=int, default=32, help="other requests in flight")
    given = parser.parse_args()
    endpoint = Endpoint.parse(given.base_url)
    asker = Asker(model=given.model, engine=given.engine)
    settings = RunSettings(asker=asker, endpoints=(endpoint,), benchmarks={}, out=Path("unused"))
    neutral = fingerprint.neutral_values(asker)
    tokenizer = Tokenizer(endpoint, given.engine, given.model)

    def fingerprinted() -> list[str] | None:
        replies = fingerprint.FingerprintReplies()
        fingerprint.ask(settings, neutral, [endpoint], open_transport, replies)
        return replies.beginnings.get(endpoint.base_url)

    first = fingerprinted()
    assert first is not None, "no fingerprint within its time"
    tokens = [tokenizer.tokens_of(text) for text in first]
    for label, load in (("alone", 0), (f"beside {given.load} requests", given.load)):
        with busy(endpoint, given.model, load) if load else contextlib.nullcontext():
            answers = [fingerprinted() for _ in range(given.repeats)]
        came = [answer for answer in answers if answer is not None]
        same = [fingerprint.same(first, answer) for answer in came]
        agreed = [
            sum(agreeing(ours, tokenizer.tokens_of(text)) for ours, text in zip(tokens, answer, strict=True))
            for answer in came
        ]
        warned = sum(n < fingerprint.MIN_SAME for n in same)
        print(f"{label}: {len(came)} of {given.repeats} came in time; equal beginnings of 8: {same}")
        if came:
            low, high = wilson(np.array(warned / len(came)), np.array(len(came))).interval()
            print(
                f"  tokens up to where they part: {statistics.fmean(agreed):.1f} of {sum(map(len, tokens))} "
                f"on average, {min(agreed)} at least; beginnings that differ: {1 - statistics.fmean(same) / 8:.1%}; "
                f"warned: {warned} of {len(came)} ({low:.1%}–{high:.1%})",
                flush=True,
            )
    once, again = sampled(endpoint, given.model, 1), sampled(endpoint, given.model, 1)
    with busy(endpoint, given.model, given.load):
        loaded = sampled(endpoint, given.model, len(fingerprint.PROMPTS))
    n = len(once)
    print(f"sampled with a seed, equal of {n}: one by one again {fingerprint.same(once, again)}, beside the load "
          f"{fingerprint.same(once, loaded)}")  # fmt: skip


if __name__ == "__main__":
    main()
