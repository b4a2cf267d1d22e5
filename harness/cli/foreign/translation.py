"""Our command that is equivalent to another tool's, while it is put together, and as it is printed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.benchmarks import catalog, task_names
from harness.cli.foreign.tables import COMMON, SERVE_OPTION, FlagTable, flag_name, tables
from harness.core import codec
from harness.core.sanitize import visible
from harness.core.secret import command_words
from harness.options.run import RunOptions
from harness.sweeps.plan import LOADS
from server_launchers.engines import table as engines

MANY = re.compile(r"\{(?:benchmarks?|loads|most|limits)\}")
"""Placeholders for all of a flag's values."""
_SHOTS = re.compile(r"\|0*[1-9]\d*(?:\|[01])?\Z|_0*[1-9]\d*_?shot")
"""Examples in a task's name: `suite|task|5|0` (LightEval), `gsm8k_gen_4_shot_cot_str` (AISBench)."""
_PLACE = re.compile(r"\{(\w*)\}")
SWEEP_FILE = "load.yaml"
LOAD_FLAGS = tuple(f"--{name}" for name in LOADS)
"""The flags of a sweep over loads."""
ALIKE = "Each load asks as many prompts as the largest number"
HEADER = "A header may be a key, so the file does not contain it: add it as `run: {header: …}`"
_RANKS = {"size": "dp", "size-local": "dpl", "start-rank": "dpr"}
"""vLLM's flags of data-parallel ranks, without their prefix, and their short forms."""
RANDOM = {"random_1k": 1024, "random_8k": 8192}
"""Benchmark of random words → tokens of its prompts."""
KEY = "Keys are not printed: export the key's environment variable"
NO_KEYS = frozenset({"", "-", "empty", "none", "null", "dummy"})
"""Values in place of a key, for a server that requires none."""


@dataclass
class Translation:
    """Our equivalent of another tool's command."""

    command: list[str]
    """The first words of our command; none if the other tool's has no equivalent."""
    takes: Collection[str]
    """The names of our command's flags and arguments."""
    environment: list[str] = field(default_factory=list)
    """NAME=VALUE words before our command."""
    benchmarks: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    options: list[tuple[str, ...]] = field(default_factory=list)
    """Flags, each with its value."""
    body: dict[str, Any] = field(default_factory=dict)
    """The value of --extra-body."""
    engine: list[str] = field(default_factory=list)
    """The words after ` -- `."""
    notes: dict[str, str] = field(default_factory=dict)
    """A flag of the other tool → why it is omitted."""
    lost: dict[str, str] = field(default_factory=dict)
    """A part of the other tool's command that ours lacks → why."""
    tool: str = ""
    """The name of the other tool's table."""

    @property
    def words(self) -> list[str]:
        """The words of our command after `harness`; none if its benchmark or model is missing."""
        options = [*self.options, *([("--extra-body", json.dumps(self.body))] if self.body else [])]
        arguments = [*filter(None, [",".join(dict.fromkeys(self.benchmarks))]), *dict.fromkeys(self.arguments)]
        flags = {*self.command, *(option[0] for option in options)}
        if not arguments and flags.isdisjoint(("--data", engines.ANY_PROGRAM)):
            return []
        words = [*self.command, *arguments, *(word for option in options for word in option)]
        return words + (["--", *self.engine] if self.engine else [])

    @property
    def sweep_file(self) -> str:
        """The file of a sweep over loads; empty for any other command."""
        if self.command != ["sweep"]:
            return ""
        loads, run, models = dict[str, set[float]](), dict[str, Any](), list[str]()
        for flag, *values in self.options:
            if flag in LOAD_FLAGS:
                loads.setdefault(flag, set()).update(map(_json, re.findall(r"\d+(?:\.\d+)?", values[0])))
            elif flag == "--model":
                models = values
            elif flag == "--limits":
                continue
            else:
                run[flag_name(flag).replace("-", "_")] = _json(values[0]) if values else True
        if "--rate" in loads and (most := loads.pop("--concurrency", None)):
            run["concurrency"] = max(most)
        content = {
            "models": models,
            "run": run | ({"extra_body": self.body} if self.body else {}),
            "benchmarks": [*dict.fromkeys(self.benchmarks)],
            **{flag_name(flag): sorted(numbers) for flag, numbers in loads.items()},
            "score": {"limits": limits} if (limits := self.value_of("--limits")) else {},
        }
        return "".join(f"{key}: {json.dumps(value)}\n" for key, value in content.items() if value)

    def line(self) -> str:
        """The command for a shell, without API keys; empty if its benchmark or model is missing."""
        if file := self.sweep_file:
            return f"cat > {SWEEP_FILE} <<'END'\n{file}END\nharness sweep {SWEEP_FILE}"
        words = command_words(self.words)
        return " ".join([*self.environment, *map(quoted, ["harness", *words])]) if words else ""

    def add(self, words: str, flag: str, values: Sequence[str]) -> None:
        """Add words of a table, with the values of the other tool's flag filled in."""
        value = values[0] if values else ""
        name, *rest = words.split(" ")
        if "{benchmark" in words:
            rest = self._cards(",".join(values), flag)
        elif "{length}" in words:
            rest = self._random_words(value, flag)
        elif MANY.search(words):
            value = ",".join(values)
            self.notes |= {flag: ALIKE} if "{most}" in words and len({*values}) > 1 else {}
        rest = [_PLACE.sub(lambda place: RENDERINGS[place[1]](value, flag), word) for word in rest]
        if name == "--header" and self.command == ["sweep"]:
            self.lost[flag] = HEADER
            return
        if name in ("MODEL", "--model") and re.fullmatch(r"[^/.~].*/", rest[0]):
            rest = [f"./{rest[0]}"]  # A hub name does not end like a folder.
        if name == "BENCHMARKS":
            self.benchmarks += rest
        elif not name.startswith("-"):
            self.arguments += rest
        elif name == "--extra-body":
            pairs = [*fields_in(rest[0])]
            self.lost |= {} if pairs else {flag: "Expected a JSON object"}
            for key, part in pairs:
                before = self.body.get(key)
                self.body[key] = before | part if isinstance(before, dict) and isinstance(part, dict) else part
        elif "{" in words or value.lower() not in ("false", "0", "none"):
            self.add_options([name, *rest])

    def add_options(self, words: Sequence[str]) -> None:
        """Add a switch, or flags that are each followed by a value; a mode that is set stays."""
        pairs = [tuple(words[i : i + 2]) for i in range(0, len(words), 2)]
        self.options += [pair for pair in pairs if pair[0] != "--dp-mode" or self.value_of("--dp-mode") is None]
        self.options = [*dict.fromkeys(reversed(self.options))][::-1]

    def value_of(self, flag: str) -> str | None:
        """The value of the last of our flags with this name; None if there is none."""
        return next((option[1] for option in reversed(self.options) if option[0] == flag and len(option) == 2), None)

    def add_key(self, usual: str, shown: str, value: str = "") -> None:
        """Name the variable of a key. usual: the tool's. shown: the flag or the variable that contains the key. value:
        the flag's value.
        """
        is_flag = shown[0] == "-"
        if is_flag and value.lower() in NO_KEYS:
            return
        ours = "--server-key-env" if self.command[0] == "serve" else "--api-key-env"
        if ours in self.takes and (shown == usual or (is_flag and re.search("api|auth", shown))):
            self.add_options([ours, usual])
        self.notes[shown] = KEY

    def drop(self, *flags: str) -> None:
        """Omit these flags of ours."""
        self.options = [option for option in self.options if option[0] not in flags]

    def keep_last(self, once: Mapping[str, str]) -> None:
        """Omit flags that a later one overrides. once: each flag with a single value → the name of its parameter. A
        sweep over loads has one flag for each load.
        """
        if self.command != ["sweep"]:
            last = {once.get(option[0]): option for option in self.options}
            self.options = [one for one in self.options if one[0] not in once or last[once[one[0]]] == one]

    def finish(self, table: FlagTable, typed: Mapping[str, str]) -> None:
        """Apply what depends on several flags. typed: the other tool's flags, without dashes, with their values."""
        if len(devices := [option[1] for option in self.options if option[0] == "--devices"]) > 1:
            self.drop("--devices")
            self.add_options(["--devices", ",".join(devices)])
        if self.command[:1] == ["serve"]:
            self._spread_over_nodes(typed)
        else:
            self._name_address(typed)
        if "--enable-dp-attention" in self.engine and (size := self.value_of("--dp")) is not None:
            # The ranks of data-parallel attention are within the GPUs of `--tp`; they are not additional replicas.
            self.drop("--dp", "--dp-mode")
            self.engine += ["--dp-size", size]
        signs = [*self.environment, self.value_of("--quantization") or ""]
        if any(re.match(r"ASCEND_|HCCL_|ascend$", sign) for sign in signs):
            engine = tables()[COMMON].on_ascend
            self.command = [engine.get(word, word) for word in self.command]
            self.options = [
                (one[0], engine.get(one[1], one[1])) if one[0] == "--serve" else one for one in self.options
            ]
        self._drop_server()
        limit = self.value_of("--limit") or ""
        for card in map(catalog.load, self.benchmarks if self.command == ["sweep"] else ()):
            if re.fullmatch("[0-9]{1,9}", limit) and int(limit) > (card.questions or 0):
                self.lost[f"--limit {limit}"] = f"{card.name} has {card.questions:,} prompts"
        if self.value_of("--api") == RunOptions.api:  # what a run uses anyway
            self.drop("--api")

    def _name_address(self, typed: Mapping[str, str]) -> None:
        """Set the address and the load of a client, whose defaults the table knows."""
        host, at = re.sub(r"\Ahttps?://", "", typed.get("host", "")), "//127.0.0.1:"
        if host not in ("", "localhost", "0.0.0.0"):  # noqa: S104 - compared, not bound
            self.options = [tuple(word.replace(at, f"//{host}:") for word in option) for option in self.options]
        limit = self.value_of("--limit")
        if self.command == ["sweep"] and limit is not None and self.value_of("--concurrency") is None:
            self.add_options(["--concurrency", limit])  # A load generator without a load sends all requests at once.

    def _spread_over_nodes(self, typed: Mapping[str, str]) -> None:
        """Set the nodes over which vLLM's data-parallel ranks are spread, from their number on each."""
        sizes = [typed.get(f"data-parallel-{name}", typed.get(short, "")) for name, short in _RANKS.items()]
        size, local, start = (int(text) if re.fullmatch("[0-9]{1,6}", text) else 0 for text in sizes)
        if local and size > local:
            self.add_options(["--nodes", str(size // local), "--node-rank", str(start // local)])
        elif self.value_of("--nodes") in (None, "1"):
            self.drop("--head-address", "--head-port", "--node-rank")

    def _drop_server(self) -> None:
        """Omit the options of a server that already runs."""
        if self.value_of("--base-url") is not None:
            served = [" ".join(option) for option in self.options if option[0] == SERVE_OPTION]
            self.notes |= dict.fromkeys((visible(one, 80) for one in served), "The server that is asked already runs")
            self.drop("--serve", SERVE_OPTION)

    def _random_words(self, length: str, flag: str) -> list[str]:
        """Return the benchmark of random words whose prompts have about this many tokens; without one, the length is
        lost.
        """
        given = float(length) if re.fullmatch(r"[0-9]{1,9}(\.0*)?", length) else 0.0
        near = [name for name, size in RANDOM.items() if 0.9 < given / size < 1.1]
        if not near:
            self.lost[visible(f"{flag} {length}", 80)] = "Random words have about 1,024 or 8,192 tokens"
        return near

    def _cards(self, names: str, flag: str) -> list[str]:
        """Return the cards of comma-separated tasks; a task without a card, or with examples, is lost."""
        cards = {name: card_named(name, self.tool) for name in re.split(r"[,\s]+", names) if name}
        for name, card in cards.items():
            shown, hint = visible(re.split(r"[|/@]", name)[-1], 80), catalog.near_to(name)
            if not card:
                reason = f"There is no benchmark {shown}.{hint} See `harness benchmarks`"
            elif _SHOTS.search(name):
                reason = tables()[COMMON].answers["num-fewshot"].text.rstrip(".")
            else:
                continue
            self.lost[f"{flag} {visible(name, 80)}"] = reason
        return [card for card in cards.values() if card]


def card_named(task: str, tool: str = "") -> str:
    """The card for a tool's task name, with the number of samples, as in `aime24:64`; empty if there is none."""
    number = re.search(r":\d+\Z", task)
    whole = task[: number.start()] if number else task
    pieces = re.split(r"[|/@]", whole)
    names = [whole, *pieces, *(re.sub(r"_gen(_.*)?\Z", "", name, flags=re.DOTALL) for name in pieces)]
    named = filter(None, (task_names.card_of(tool, name) for name in names))
    known = next(named, "") or next(filter(catalog.knows, [*names, *(name.replace(":", "_") for name in names)]), "")
    return catalog.load(known).name + (number[0] if number else "") if known else ""


RENDERINGS: Mapping[str, Callable[[str, str], str]] = {
    "limits": lambda value, _: ",".join(map(_limit, re.split(r"[,\s]+", value))),
    "": lambda value, _: value,
    "loads": lambda value, _: value,
    "none": lambda _value, _: "",
    "url": lambda value, _: re.sub(r"/((chat/)?completions|responses|messages)/?\Z", "", value),
    "after": lambda value, _: value.partition("/")[2],
    "host": lambda value, _: value.rpartition(":")[0],
    "port": lambda value, _: value.rpartition(":")[2],
    "field": lambda value, flag: json.dumps({flag_name(flag.rpartition(".")[2]).replace("-", "_"): _json(value)}),
    "most": lambda value, _: max(re.findall(r"\d+", value) or ["1"], key=int),
    "device": lambda value, _: value.rpartition("=")[2].strip("\"'"),
    "npu": lambda value, _: value.removeprefix("/dev/davinci"),
    "chat": lambda value, flag: json.dumps({"chat_template_kwargs": {flag.rpartition(".")[2]: _json(value)}}),
}
"""Kind of a placeholder in a table's words → the function that renders a value and its flag there."""


def quoted(word: str) -> str:
    """A word quoted for a shell and safe for a terminal: control characters are written as escapes (`$'…'`)."""
    escaped = visible(word.replace("\\", "\\\\").replace("'", "\\'"))
    return shlex.quote(word) if visible(word) == word else f"$'{escaped}'"


_LIMITED = {
    **dict.fromkeys(("ttft", "time_to_first_token"), "first_token"),
    **dict.fromkeys(("tpot", "inter_token_latency"), "token_gap"),
    **dict.fromkeys(("e2el", "request_latency"), "total"),
}
"""Times that vLLM and AIPerf limit, in ms → our names; `tpot` and AIPerf's `inter_token_latency` are means."""


def _limit(pair: str) -> str:
    """Convert a limit such as `ttft:500` (in ms) to our syntax; return any other text unchanged."""
    name, is_, time = pair.partition(":")
    return f"{_LIMITED[name]}={time}ms" if is_ and name in _LIMITED else pair


def _json(text: str) -> Any:
    """The JSON value of a text; the text itself if it is not JSON."""
    try:
        return codec.decode(text)
    except (codec.DecodeError, RecursionError):
        return {"true": True, "false": False}.get(text.lower(), text)


def fields_in(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values in `a=1,b=2` or in a JSON object."""
    value = _json(text)
    if not isinstance(value, dict) and re.fullmatch(r"\{.*\}", text, re.DOTALL):  # LightEval's `{a:1,b:2}`
        text = re.sub(r"(?:\A\{|,)\s*([\w-]+):", r",\1=", text[:-1])[1:]
    pairs = [pair.partition("=") for pair in re.split(r",(?=\s*[\w.-]+=)", text)]
    yield from value.items() if isinstance(value, dict) else ((name.strip(), part) for name, is_, part in pairs if is_)
