"""A model that calls a tool, behind a server on each API, in memory: what may go wrong with its calls, and what is odd
about healthy servers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.protocol.failures import RequestFailed, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.request_builder import Asker
from harness.probes.calls import CUT, NOTE, TOOL
from harness.probes.requests import ProbedServer
from harness.testing import Said

PLACE = {"room": "cellar", "shelf": 4}
CALL = {"text": NOTE, "numbers": [3, 1.5, -2], "place": PLACE}
MARKED = f'<tool_call>\n{{"name": "{TOOL.name}", "arguments": {json.dumps(CALL)}}}\n</tool_call>'
PROSE = "I would rather not save anything."


@dataclass
class Asked:
    """A request as any API has it. forced: whether it must be answered by a call."""

    body: Mapping[str, Any]
    chance: random.Random

    @property
    def choice(self) -> str:
        word = self.body.get("tool_choice", "auto")
        word = word["type"] if isinstance(word, dict) else word
        return "required" if word == "any" else str(word)

    @property
    def is_cut(self) -> bool:
        return CUT in (self.body.get("max_tokens"), self.body.get("max_output_tokens"))

    @property
    def is_two(self) -> bool:
        return "two notes" in json.dumps(self.body)

    @property
    def streams(self) -> bool:
        return bool(self.body["stream"])


Change = Callable[[Asked, Said], Said | str]
"""What a server makes of a reply; a text is the refusal of the request."""


def called(*arguments: str | dict[str, Any], text: str = "") -> Said:
    sent = [each if isinstance(each, str) else json.dumps(each) for each in arguments]
    return Said(text, 60, finish="tool_calls", calls=tuple((TOOL.name, each) for each in sent))


def honest(asked: Asked) -> Said:
    """The reply of a model that calls whenever it is asked to, behind a server without a fault."""
    if "tools" not in asked.body or asked.choice == "none":
        return Said(PROSE, prompt_tokens=60 if "tools" not in asked.body else 160)
    said = replace(called(*[CALL | {"text": "milk"}, CALL] if asked.is_two else [CALL]), prompt_tokens=160)
    if asked.is_cut:
        return replace(said, calls=((TOOL.name, json.dumps(CALL)[:20]),), finish="length", tokens=CUT)
    return said


def when(condition: Callable[[Asked], bool], change: Callable[[Said], Said | str]) -> Change:
    return lambda asked, said: change(said) if condition(asked) else said


def says(said: Said | str) -> Callable[[Said], Said | str]:
    """Another reply; its prompt is as long as that of any."""
    return lambda real: said if isinstance(said, str) else replace(said, prompt_tokens=real.prompt_tokens)


def sends(change: Callable[[str], str]) -> Callable[[Said], Said]:
    """Other arguments in each call."""
    return lambda said: replace(said, calls=tuple((name, change(each)) for name, each in said.calls))


def ends(finish: str) -> Callable[[Said], Said]:
    return lambda said: replace(said, finish=finish)


def identified(by: str) -> Callable[[Said], Said]:
    return lambda said: replace(said, ids=(by,) * len(said.calls))


def offered(asked: Asked) -> bool:
    return "tools" in asked.body and asked.choice != "none"


def whole(asked: Asked) -> bool:
    return offered(asked) and not asked.is_cut


def sometimes(asked: Asked) -> bool:
    return whole(asked) and asked.chance.random() < 0.5


FLAG = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
FAULTS: dict[str, tuple[str, str | None, Change]] = {
    # the check that finds it, the engine
    "the parser's flag asked for": ("parsed calls", "vllm", when(offered, says(FLAG))),
    "no parser for free calls": ("parsed calls", "vllm", when(lambda asked: asked.is_two, says(FLAG))),
    "--jinja asked for": ("parsed calls", "llama.cpp", when(offered, says("tools param requires --jinja flag"))),
    "tools ignored": ("parsed calls", None, when(offered, lambda _: Said(PROSE, prompt_tokens=60))),
    "calls never parsed": ("parsed calls", None, when(whole, says(Said(MARKED)))),
    "bare calls never parsed": ("parsed calls", None, when(whole, says(Said(MARKED.split("\n")[1])))),
    "no call under a grammar": ("parsed calls", "llama.cpp", when(whole, says(Said(PROSE)))),
    "markup beside calls": ("call markup", None, when(whole, lambda said: replace(said, text=MARKED))),
    "free calls left in the text": ("call markup", None, when(lambda asked: asked.is_two, says(Said(MARKED)))),
    "cut calls said whole": ("cut calls", None, when(lambda a: a.is_cut, ends("tool_calls"))),
    "cut calls said whole in streams": (
        "cut calls", None, when(lambda a: a.is_cut and a.streams, ends("tool_calls"))
    ),
    "cut calls emptied": ("cut calls", None, when(lambda a: a.is_cut, says(replace(called({}), tokens=CUT)))),
    "no calls in streams": ("streamed calls", None, when(lambda a: whole(a) and a.streams, says(Said(PROSE)))),
    "calls in streams only": ("streamed calls", None, when(lambda a: whole(a) and not a.streams, says(Said(PROSE)))),
    "cut by streams only": ("streamed calls", None, when(lambda a: whole(a) and a.streams, ends("length"))),
    "a mangled character in streams": (
        "streamed calls", None, when(lambda a: whole(a) and a.streams, sends(lambda each: each.replace("\\ud83d", "")))
    ),
    "no arguments in streams of a model that copies loosely": (
        "streamed calls", None,
        lambda a, said: (
            sends(lambda _: "" if a.streams else json.dumps(CALL | {"text": "milk"}))(said)
            if whole(a) and not a.is_two
            else said
        ),
    ),
    "arguments of Python": ("call arguments", None, when(whole, sends(lambda each: str(json.loads(each))))),
    "arguments in a text": ("call arguments", None, when(whole, sends(json.dumps))),
    "a grammar that leaves a parameter out": ("call arguments", "sglang", when(whole, says(called({"text": NOTE})))),
    "a schema that is never kept": ("call arguments", None, when(whole, says(called({"text": 5})))),
    "one id for two calls": ("call ids", None, when(lambda a: a.is_two, identified("a"))),
    "no ids": ("call ids", None, when(offered, identified(""))),
    "one id in each turn": ("call ids", None, when(lambda a: not a.is_two, identified("a"))),
    "calls that nobody wants": ("unwanted calls", None, when(lambda a: a.choice == "none", says(called(CALL)))),
}  # fmt: skip

NO_CHOICE = "tool_choice must be auto or none"
HEALTHY: dict[str, tuple[str | None, Change]] = {
    "plain": (None, lambda _, said: said),
    "vLLM": ("vllm", lambda _, said: said),
    "vLLM, which binds only strict tools": (
        "vllm", when(lambda a: whole(a) and a.chance.random() < 0.8, says(called({"text": NOTE})))
    ),
    "vLLM, and a model that never keeps the schema": ("vllm", when(whole, says(called({"text": 5})))),
    "vLLM, whose parser does not force calls": ("vllm", when(whole, says(Said(PROSE)))),
    "SGLang": ("sglang", when(lambda a: a.is_two and sometimes(a), says(called({"text": NOTE})))),
    "llama.cpp": ("llama.cpp", when(lambda a: a.is_two and sometimes(a), says(called({"text": NOTE})))),
    "declines": (None, when(lambda a: whole(a) and (a.is_two or sometimes(a)), says(Said(PROSE)))),
    "extra text": (None, when(sometimes, lambda said: replace(said, text='I use {"name": "save_note"}'))),
    "calls twice": (None, when(sometimes, lambda said: replace(said, calls=said.calls * 2))),
    "floats": ("vllm", when(whole, sends(lambda each: each.replace("4}", "4.0}")))),
    "required refused": (None, when(lambda a: a.choice == "required", says(NO_CHOICE))),
    "required refused, declines": (
        None, lambda a, said: NO_CHOICE if a.choice == "required" else says(Said(PROSE))(said) if sometimes(a) else said
    ),
    "tools refused": (None, when(offered, says("this model does not support tools"))),
    "tools and tool_choice refused": (None, when(offered, says("unknown fields: tools, tool_choice"))),
    "never calls": (None, when(offered, says(Said(PROSE)))),
    "never calls, counts nothing": (None, lambda _, said: Said(PROSE)),
    "max_tokens ignored": (None, when(lambda a: a.is_cut, says(called(CALL)))),
    "broken arguments": (None, when(sometimes, sends(lambda each: each.replace('\\"', '"')))),
    "a parameter left out": (None, when(sometimes, says(called({"text": NOTE})))),
    "broken markup": (None, when(sometimes, says(Said(MARKED.replace('\\"', '"'))))),
    "calls described": (None, when(sometimes, says(Said(f"{PROSE} A call has the form {MARKED[12:-13]}.")))),
    "thinks of calls": (None, when(whole, lambda said: replace(said, reasoning=f"Shall I write {MARKED}?"))),
    "copies badly": (None, when(sometimes, sends(lambda each: each.replace("Anna", "Ann")))),
}  # fmt: skip


@dataclass(kw_only=True)
class CallingServer(ProbedServer):
    """The model behind this change, asked in memory."""

    change: Change
    chance: random.Random
    asker: Asker = field(default_factory=lambda: Asker(model="toy"))

    def send_streams(self, bodies: Sequence[Mapping[str, Any]], api: API = CHAT) -> list[Reply | RequestFailed]:
        return [self._reply(dict(body), api) for body in bodies]

    def _reply(self, body: dict[str, Any], api: API) -> Reply | RequestFailed:
        self.n_requests += 1
        asked = Asked(body, self.chance)
        said = self.change(asked, honest(asked))
        if isinstance(said, str):
            return failure_of_status(400, json.dumps({"error": {"message": said}}).encode())
        said = said.after(json.dumps(body).encode())
        content = said.events(api.name) if body["stream"] else [json.dumps(said.whole(api.name)).encode()]
        parser = ReplyParser(api, started=0.0, started_utc=0.0, max_body_bytes=1 << 20)
        try:
            parser.feed(b"".join(content), 0.2)
            return parser.finish()
        except RequestFailed as failed:
            return failed
