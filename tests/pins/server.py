"""Servers whose replies are decided by the request alone, in any order and as often as it comes."""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from harness.testing import Answer, Request, Said, Step, serving
from tests.commands.toy_model import CONTEXT, Fault, Toy, answering

ENGINES: Mapping[str, Mapping[str, Any]] = {
    "plain": {"/v1/models": {"data": [{"id": "pinned", "object": "model"}]}},
    "vllm": {
        "/v1/models": {"data": [{"id": "pinned", "owned_by": "vllm", "root": "org/pinned", "max_model_len": 40960}]},
        "/version": {"version": "0.33.0"},
        "/server_info": {
            "vllm_config": {
                "model_config": {"model": "org/pinned", "dtype": "bfloat16", "generation_config": "auto"},
                "parallel_config": {"tensor_parallel_size": 2, "data_parallel_size": 1},
            }
        },
    },
    "sglang": {
        "/v1/models": {"data": [{"id": "pinned", "owned_by": "sglang", "root": "org/pinned", "max_model_len": 40960}]},
        "/get_model_info": {"model_path": "org/pinned", "preferred_sampling_params": {"top_k": 20}},
        "/get_server_info": {
            "version": "0.5.23",
            "context_length": 40960,
            "tp_size": 2,
            "dtype": "bfloat16",
            "max_running_requests": 48,
            "sampling_defaults": "model",
        },
    },
    "llama.cpp": {
        "/v1/models": {"data": [{"id": "pinned", "owned_by": "llamacpp", "meta": {"n_params": 9, "n_vocab": 9}}]},
        "/props": {
            "model_path": "/models/pinned.gguf",
            "total_slots": 3,
            "build_info": "b1-pinned",
            "default_generation_settings": {"n_ctx": 40960, "params": {"top_k": 40, "min_p": 0.05}},
        },
    },
}
"""Engine → page → what it says there. Every other page is not there (404)."""

SUM = re.compile(r"What is (\d+) \+ (\d+)\?")
SHOWN = re.compile(r"<(reference|answer)-[0-9a-f]{12}>(.*?)</\1-[0-9a-f]{12}>", re.DOTALL)


def draw(*parts: Any) -> int:
    """A number below 100 that is decided by the parts."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()[0] * 100 // 256


def solving(percent: int, engine: str = "plain", kinds: bool = False) -> Answer:
    """A model that solves this percentage of sums, by seed and question.

    kinds: some replies have reasoning, are cut, state no answer, or give it in prose.
    """

    def reply(request: Request) -> Said:
        body = request.json
        turns = body.get("messages") or body.get("input")
        prompt = turns[-1]["content"] if turns else body["prompt"]
        number = draw(body.get("seed"), prompt, body.get("temperature"), percent)
        text, reasoning, finish = _solution(str(prompt), number, percent, kinds)
        tokens = len(text) + len(reasoning) if request.api in ("chat", "completions") else 3
        return Said(text, tokens, reasoning, finish, model=body.get("model", "pinned"))

    return serving(reply, pages=ENGINES[engine])


def _solution(question: str, number: int, percent: int, kinds: bool) -> tuple[str, str, str]:
    """(text, reasoning, finish reason)."""
    terms = SUM.search(question)
    value = int(terms[1]) + int(terms[2]) if terms else 7
    right = number < percent
    stated = str(value if right else value + 1)
    if not kinds:
        return rf"Case {number}: \boxed{{{stated}}}", "", "stop"
    if number % 10 == 0:
        return "I add them up, and then", "It goes on and", "length"
    if number % 10 == 1:
        return "I do not know.", "", "stop"
    if number % 10 == 2:
        words = "it is what comes after" if right else "nobody can say what comes"
        return rf"So \boxed{{\text{{{words} number {value - 1}}}}}", "", "stop"
    if number % 2:
        return rf"Case {number}: \boxed{{{stated}}}", f"I add {terms[1] if terms else ''} and find {stated}.", "stop"
    return rf"Case {number}: so it is \boxed{{\frac{{{2 * int(stated)}}}{{2}}}}", "", "stop"


def judging(engine: str = "plain") -> Answer:
    """A judge that finds right what says the words 'comes after', and gives it all of 7 points but one."""

    def reply(request: Request) -> Said:
        asked = request.json["messages"][-1]["content"]
        if "out of 7" in asked:
            is_right = "comes after" in asked.partition("<answer-")[2]
            text = f"<points>{6 if is_right else 1} out of 7</points>"
        else:
            is_right = "comes after" in dict(SHOWN.findall(asked)).get("answer", "")
            text = f"I compared them.\n**VERDICT: {'CORRECT' if is_right else 'INCORRECT'}**"
        return Said(text, len(text), model=request.json.get("model", "pinned"))

    return serving(reply, pages=ENGINES[engine])


def drawing(engine: str, weights: str = "a", fault: Fault | None = None) -> Answer:
    """A small model that really samples, behind an engine's pages. weights: another name is another model."""
    lock, times = threading.Lock(), Counter[bytes]()

    def reply(request: Request) -> Iterable[Step]:
        with lock:  # the n-th of equal requests is answered the same, whichever it is
            times[request.body] += 1
            chance = random.Random(request.body + bytes(times[request.body]))
        toy = Toy(weights, spread=1.0, names=("pinned",), chance=chance)
        return answering(toy, fault or Fault())(request)

    pages = json.dumps(ENGINES[engine]).replace("40960", str(CONTEXT))
    return serving(reply, pages=json.loads(pages))
