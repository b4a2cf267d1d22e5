"""How engines state the log-probabilities of a prompt's tokens: the request, and what its reply says of them.

vLLM takes token ids at /v1/completions with `prompt_logprobs`, and states token id → log-probability for each place.
SGLang takes them at /generate with `return_logprob`, and states lists of (log-probability, token id, text). All
functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from harness.core import codec
from server_launchers.engines import table as engines

TOP = 5
"""Number of likeliest tokens that are asked for at each place."""


LEAST, MOST = -1e4, 0.1
"""Bounds of a log-probability in nats: vLLM states -9,999 for minus infinity, and rounding may exceed 0."""


class NoLogprobs(ValueError):
    """A reply that does not state the log-probabilities of the sent tokens; the message says what it lacks."""


class ReadTokens(NamedTuple):
    """What a server states of some tokens. logprobs: of each. tops: token id → log-probability of the likeliest tokens
    at each place, empty where it states none.
    """

    logprobs: list[float]
    tops: list[dict[str, float]]


class _Stated(msgspec.Struct):
    logprob: float


class _Choice(msgspec.Struct):
    prompt_logprobs: list[dict[str, _Stated] | None] | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_Entry = tuple[float | None, int, str | None]


class _Meta(msgspec.Struct):
    input_token_logprobs: list[_Entry] | None = None
    input_top_logprobs: list[list[_Entry] | None] | None = None


class _Generated(msgspec.Struct):
    meta_info: _Meta


def lacks(engine: str | None) -> str:
    """What servers of this engine lack to read replies; empty if they have it, or the engine is unknown."""
    if engine is None or engines.dialect(engine).reads_prompts:
        return ""
    return f"{engine} states no log-probabilities of a prompt's tokens, by which replies are read; vLLM and SGLang do"


def request(engine: str | None, model: str, prompt: Sequence[int], reply: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The page, behind the server's root, and the body of the request that reads a reply."""
    ids = [*prompt, *reply]
    if engines.dialect(engine).reads_prompts == "input_token_logprobs":
        return "/generate", {
            "input_ids": ids, "sampling_params": {"max_new_tokens": 1, "temperature": 0}, "return_logprob": True,
            "logprob_start_len": len(prompt) - 1, "top_logprobs_num": TOP, "return_text_in_logprobs": False,
        }  # fmt: skip
    return "/v1/completions", {
        "model": model, "prompt": ids, "max_tokens": 1, "temperature": 0, "prompt_logprobs": TOP,
    }  # fmt: skip


def read(engine: str | None, body: bytes, reply: Sequence[int]) -> ReadTokens:
    """What the answer to `request` states of the reply's tokens. Raises `NoLogprobs`."""
    try:
        if engines.dialect(engine).reads_prompts == "input_token_logprobs":
            meta = codec.decode(body, _Generated).meta_info
            entries = (meta.input_token_logprobs or [])[-len(reply) :]
            tops = [{str(token): value for value, token, _ in each or () if value is not None}
                    for each in (meta.input_top_logprobs or [])[-len(reply) :]]  # fmt: skip
            stated = [value for (value, token, _), sent in zip(entries, reply, strict=False) if token == sent]
        else:
            places = (codec.decode(body, _Completion).choices[0].prompt_logprobs or [])[-len(reply) :]
            tops = [{token: each.logprob for token, each in (place or {}).items()} for place in places]
            stated = [top.get(str(sent)) for top, sent in zip(tops, reply, strict=False)]
    except (codec.DecodeError, IndexError) as error:
        raise NoLogprobs(f"its reply states no log-probabilities of the prompt ({error})") from error
    logprobs = [value for value in stated if value is not None]
    values = chain(logprobs, *(top.values() for top in tops))
    if odd := [value for value in values if not LEAST <= value <= MOST]:
        raise NoLogprobs(f"it states {odd[0]:g} as a log-probability: expected {LEAST:g} to 0")
    if len(logprobs) != len(reply):
        raise NoLogprobs(f"it states log-probabilities of {len(logprobs)} of the {len(reply)} tokens that were sent")
    return ReadTokens(logprobs, tops if len(tops) == len(reply) else [{} for _ in reply])
