"""Writes the pages of docs/reference from the code: `python -m tools.reference [FOLDER]`.

Options come from the commands, fields from the records' definitions and docstrings, and names from the shipped YAML
files. A test checks that the pages are up to date.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

import harness
from harness.benchmarks import catalog
from harness.cli.help import heading_of
from harness.cli.json_output import output_types, printed_type, schemas
from harness.cli.main import LazyGroup
from harness.client.address import providers
from harness.client.facts import discovery
from harness.core.errors import Exit
from harness.core.field_docs import field_docs, record_docs
from harness.core.options import Options, options_of
from harness.core.records import Grade, GradeRules, Message, Question, Sample, Seam, Timing, Usage
from harness.core.reply_notes import DOUBTFUL, WORDS, Ending
from harness.generation.dispatch.retry import FAULTS, Fault, Sign
from harness.options.commands import COMMANDS, GROUPS
from harness.options.decisions import CompareOptions, PlanBasis, VerifyOptions
from harness.options.finished_runs import AuditOptions, ExportOptions, GradeOptions, MergeOptions, ReportOptions
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeOptions
from harness.options.run import RunOptions
from harness.options.score import ScoreOptions
from harness.probes.likelihood_readings import ReplyReading
from harness.probes.probe import select
from harness.runs.engine_pages import EnginePage, EngineReading
from harness.runs.grades import Opinion
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan
from harness.runs.overrides import Override
from harness.sweeps.schema import json_schema
from server_launchers.engines import table as engines
from server_launchers.engines.engine import EngineProfile

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by `python -m tools.reference`; edit the code that it is generated from instead. -->\n\n"

FILES: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "manifest.json": (Manifest, BenchmarkRecord, Plan),
    "<benchmark>/questions.jsonl": (Question, Message, GradeRules),
    "<benchmark>/samples.jsonl": (Sample, Usage, Timing, Seam),
    "<benchmark>/grades.jsonl": (Grade,),
    "<benchmark>/opinions.jsonl": (Opinion,),
    "<benchmark>/overrides.jsonl": (Override,),
    "likelihood/base-<key>.jsonl": (ReplyReading,),
    "engine.jsonl": (EngineReading, EnginePage),
    "<benchmark>/scores.json": (),
}
"""File of a run folder → the records that it contains, outermost first; none if the page on JSON explains them."""

COMMON_FIELDS = "[Common fields](#common-fields)"

SHARED = 3
"""Number of sections with the same row from which the row is printed once and linked."""

Row = tuple[str, ...]
"""An option with its meaning, or a field with its type and meaning."""

VARIABLES = {
    "HARNESS_CACHE": "Folder for weights and tools. Default: `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`.",
    "HARNESS_STATE": "Folder for records of running servers. Default: in `$XDG_STATE_HOME` or `~/.local/state`.",
    "HARNESS_DATASETS": "Folders with your own cards, separated as in `PATH`. They take precedence over the built-in "
    "cards.",
    "HARNESS_GRADERS": "Modules whose verifiers may be called, separated by commas.",
    "HARNESS_SERVER_KEY": "API key that a server started by the harness requires from clients. "
    "The harness passes it to the engine.",
    "OPENAI_BASE_URL": "Server URL to use if no option specifies one.",
    "OPENAI_API_KEY": "API key for `openai` and for servers that do not belong to a known provider. "
    "Other providers have their own variables.",
    "HF_TOKEN, HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE": "Same meaning as in the `huggingface_hub` library.",
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY": "Proxies (`http://` only). Requests to private addresses never "
    "use a proxy.",
    "NO_COLOR": "Turns off colors.",
}


def cell(text: str) -> str:
    """Return text formatted for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(heads: tuple[str, ...], rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


OPTIONS = partial(table, ("option", "what it does"))
"""Writes a table of options."""


def fields(rows: list[Row]) -> str:
    """A list of fields with their types and meanings, which fits a narrow page."""
    return "".join(f"- {name} ({kind}): {meaning}\n" for name, kind, meaning in rows) + "\n"


def shared(sections: Iterable[list[Row]]) -> list[Row]:
    """The rows that occur in several sections; of rows with one name, only the most frequent."""
    count = Counter(row for rows in sections for row in rows)
    most = {row[0]: row for row, _ in reversed(count.most_common())}
    return [row for row, n_sections in count.items() if n_sections >= SHARED and most[row[0]] == row]


def section(rows: list[Row], elsewhere: list[Row], link: str, write: Callable[[list[Row]], str]) -> str:
    """The rows of a section. elsewhere: rows that are explained behind the link, so that only their names are here."""
    named = [row[0].replace("` `", "`\0").partition("\0")[0] for row in rows if row in elsewhere]
    own = [row for row in rows if row not in elsewhere]
    return (f"{link}: {', '.join(named)}.\n\n" if named else "") + (write(own) if own else "")


def commands() -> str:
    """The page that lists all commands under their headings, with links to their pages."""
    text = "# Commands\n\n" + NOTE
    for heading, listed in GROUPS.items():
        rows = [(f"[`harness {name}`](commands/{name}.md)", cell(command.line)) for name, command in listed.items()]
        text += f"## {heading}\n\n" + table(("command", "what it does"), rows)
    return text


def command_page(name: str) -> str:
    """The page of one command, with every option in its help; for a group, also the options of its commands."""
    entry = _entry(name)
    of_run = [row for rows in _options("run", _entry("run")).values() for row in rows] if name == "sweep" else []
    text = _command(name, entry, of_run, "As in [`harness run`](run.md)").replace("\n\n", f"\n\n{NOTE}", 1)
    below = sorted(entry.commands.items()) if isinstance(entry, click.Group) else []
    inner = [(f"{name} {key}", command) for key, command in below if not command.hidden]
    if not inner:
        return text
    rows = [(f"`harness {title}`", cell(command.get_short_help_str(200))) for title, command in inner]
    text += table(("command", "what it does"), rows)
    in_many = shared([row for rows in _options(title, command).values() for row in rows] for title, command in inner)
    if in_many:
        text += "## Common options\n\nThe sections below list which commands have them.\n\n"
        text += OPTIONS(in_many)
    link = "[Common options](#common-options)"
    return text + "".join(_command(title, command, in_many, link) for title, command in inner)


def _entry(name: str) -> click.Command:
    """A command by name."""
    top = LazyGroup("harness")
    entry = top.get_command(click.Context(top), name)
    assert entry is not None
    return entry


def _command(title: str, command: click.Command, elsewhere: list[Row], link: str) -> str:
    """The section of a command: its help, and a table of its options. elsewhere: options explained behind the link."""
    level = "##" if " " in title else "#"
    summary = inspect.cleandoc(command.help or "").split("\b")[0].strip()
    subjects = _options(title, command)
    text = f"{level} harness {title}\n\n{summary.replace('<', '&lt;')}\n\n"
    for subject, rows in subjects.items():
        text += f"{level}# {subject}\n\n" if len(subjects) > 1 else ""
        text += section(rows, elsewhere, link, OPTIONS)
    return text


def _keys_of_flags(name: str) -> set[str]:
    """The keys of a sweep file that are flags of this command, or of a command in this group."""
    entry = _entry(name)
    entries = entry.commands.values() if isinstance(entry, click.Group) else [entry]
    parameters = [flag for command in entries for flag in command.params if isinstance(flag, click.Option)]
    words = [word for parameter in parameters for word in (*parameter.opts, *parameter.secondary_opts)]
    return {f"`{word.removeprefix('--').removeprefix('no-').replace('-', '_')}`" for word in words}


def _options(title: str, command: click.Command) -> dict[str, list[Row]]:
    """Heading → the rows of a command's options."""
    context = click.Context(command, info_name=title)
    subjects: dict[str, list[Row]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and not {"--help", "--help-all"} & {*parameter.opts}:
            # Each flag is a separate piece that a narrow page does not split.
            flag = f"`{record[0].replace('|', chr(92) + '|')}`".replace(" ", "` `").replace(",` `", ", ")
            subjects.setdefault(heading_of(parameter), []).append((flag, cell(record[1])))
    return subjects


def run_folder() -> str:
    """The page of a run folder: every field of every record in its files."""
    text = "# Run folder files\n\n" + NOTE
    text += (
        "Times are in seconds, and fractions are between 0 and 1. Fields marked `?` may be absent.\n\n"
        "`<benchmark>` is the benchmark's name if the name is at most 100 bytes long and consists only of letters "
        "and digits in any script (no capital letters) and `. _ + -`. In any other name, unsupported characters are "
        "replaced with hyphens and a digest is appended: `My Exercises` becomes `My-Exercises-c3a6c613`.\n\n"
    )
    in_many = shared(_fields(record) for records in FILES.values() for record in records)
    text += "## Common fields\n\n" + fields(in_many)
    for file, records in FILES.items():
        text += f"## `{file}`\n\n"
        for record in records:
            text += f"### {record.__name__}\n\n{_docstring(record)}\n\n"
            text += section(_fields(record), in_many, COMMON_FIELDS, fields)
        if not records:
            text += "[RunScore](json.md#runscore) without `run`.\n\n"
    return text


def _fields(record: type[msgspec.Struct]) -> list[Row]:
    """The rows of a record's fields."""
    types: dict[str, Any] = {}
    for base in reversed(record.__mro__):
        types |= inspect.get_annotations(base)
    docs = record_docs(record)
    return [
        (
            f"`{field.name}`{'' if field.required else '?'}",
            f"`{cell(str(types.get(field.name, '')))}`",
            cell(docs.get(field.name, "")),
        )
        for field in msgspec.structs.fields(record)
    ]


def _docstring(record: type) -> str:
    """The first paragraph of a record's docstring, for Markdown."""
    return cell((record.__doc__ or "").partition("\n\n")[0])


def environment() -> str:
    """The page on exit codes and environment variables."""
    docs = field_docs(Exit.__module__, Exit.__name__)
    exits = [(str(code.value), cell(docs[code.name])) for code in Exit]
    exits.append(("128+n", "Stopped by signal n (130: Ctrl-C, 143: SIGTERM)."))
    return (
        "# Exit codes and environment\n\n"
        + NOTE
        + "## Exit codes\n\n"
        + table(("code", "meaning"), exits)
        + "## Environment variables\n\n"
        + table(("variable", "meaning"), [(f"`{k}`", v) for k, v in VARIABLES.items()])
    )


def names() -> str:
    """The page of names: cards, suites, and providers."""
    text = "# Cards, suites and providers\n\n" + NOTE + "## Cards\n\n"
    rows: list[Row] = []
    for card in catalog.cards():
        counts = str(card.questions or ""), str(card.samples)
        rows.append((f"`{card.name}`", cell(card.title), *counts, f"`{card.prompt}`", cell(card.license)))
    text += table(("name", "title", "questions", "samples", "prompt", "license"), rows)
    suites = []
    for path in catalog.suites():
        content = yaml.safe_load(path.read_text("utf-8"))
        asked = ", ".join(f"`{entry['benchmark']}`" for entry in content["benchmarks"])
        suites.append((f"`{path.stem}`", cell(content["suite"]["title"]), asked))
    text += "## Suites\n\n" + table(("name", "what it reproduces", "benchmarks"), suites)
    rows = []
    for name in providers.names():
        where = providers.load(name).address
        address = str(where.base_url).rstrip("/") if where.base_url else f"`--base-url`, ends in `{where.path}`"
        rows.append((f"`{name}`", address, f"`{where.key_variable}`"))
    text += "## Providers\n\nFor their other settings and sources, see `harness/client/address/provider_files`.\n\n"
    text += table(("name", "address", "key"), rows)
    return text + "For presets, see [Presets](presets.md).\n"


def sweep() -> str:
    """The page on sweep files: every key that they may contain, from the published schema."""
    schema = json_schema()
    parts = schema["$defs"]
    text = "# Sweep files\n\n" + NOTE
    text += (
        "The keys of the file that is passed to `harness sweep FILE` or `harness run FILE`. `harness sweep --schema` "
        "prints its JSON schema. Run and server options have the same meanings as the flags with the same names "
        "([commands](commands.md)). For an introduction with examples, see [sweeps](../sweeps.md).\n\n"
    )
    helps = {"Judge": _meanings(JudgeOptions), "Likelihood": _meanings(ProbeOptions)}
    flags = {"Run": "run", "Score": "score", "Server": "serve"}
    first = {"The whole file": schema, "Run": parts["Run"], "Server": parts["Server"]}
    for name, part in (first | parts).items():
        properties = part["properties"]
        held = [
            base for base in ("Run", "Server") if base != name and len({*parts[base]["properties"]} - {*properties}) < 3
        ]
        within = {key for base in held for key in parts[base]["properties"]}
        paragraphs = [
            part.get("description", ""),
            *(f"It can also contain any key of [{base}](#{base.lower()})." for base in held),
        ]
        text += f"## {name}\n\n" + "".join(f"{cell(paragraph)}\n\n" for paragraph in paragraphs if paragraph)
        rows = _rows({key: value for key, value in properties.items() if key not in within}, helps.get(name, {}))
        if name in flags:
            known = _keys_of_flags(flags[name])
            as_flags = [row[:2] for row in rows if row[0] in known]
            rows = [row for row in rows if row[0] not in known]
            text += f"With the meanings of the [flags](commands/{flags[name]}.md):\n\n" + table(
                ("key", "value"), as_flags
            )
        if rows:
            text += table(("key", "value", "meaning"), rows)
    return text


def json_output() -> str:
    """The page on JSON output: what each command prints with `--json`, from its output types."""
    shapes, records = schemas({name: printed_type(prints) for name, prints in output_types().items()})
    text = "# What `--json` prints\n\n" + NOTE
    text += (
        "`harness COMMAND --json-schema` prints the JSON schema of a command's output. Fields marked `?` "
        "may be absent; all other fields are always present. For rules that apply to all outputs, see "
        "[JSON](../json.md).\n\n"
    )
    rows = [(f"`harness {name} --json`", cell(_schema_type(shape))) for name, shape in shapes.items()]
    text += table(("command", "what it prints"), rows)
    printed = {name: _printed_fields(record) for name, record in records.items()}
    in_many = shared(printed.values())
    text += "## Common fields\n\n" + fields(in_many)
    for name, record in records.items():
        text += f"## {name}\n\n{cell(record.get('description', ''))}\n\n"
        if printed[name]:
            text += section(printed[name], in_many, COMMON_FIELDS, fields)
        else:
            text += "A list.\n\n" + fields(
                [
                    (str(place), cell(_schema_type(value)), cell(value["description"]))
                    for place, value in enumerate(record["prefixItems"])
                ]
            )
    return text


def _printed_fields(record: dict[str, Any]) -> list[Row]:
    """The rows of a printed record's fields."""
    return [
        (
            f"`{key}`{'' if key in record['required'] else '?'}",
            cell(_schema_type(value, null=True)),
            cell(value["description"]),
        )
        for key, value in record.get("properties", {}).items()
    ]


def _rows(properties: dict[str, Any], helps: dict[str, str]) -> list[Row]:
    """Table rows with the keys of a schema, their values, and their meanings. helps: flag name → help text, used as the
    meaning of a key with that name.
    """
    return [
        (f"`{key}`", cell(_schema_type(value)), cell(value.get("description") or helps.get(key, "")))
        for key, value in properties.items()
    ]


def _meanings(declared: type[Options]) -> dict[str, str]:
    """Option → its help, in which other options have their names in Python and in files."""
    return {
        name: ("False: " if option.default is True else "") + option.help
        for name, option in options_of(declared).items()
    }


_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
"""Key of a JSON schema → the sign for the limit."""


def _schema_type(value: dict[str, Any], *, null: bool = False) -> str:
    """A JSON schema's type in a few words, with its limits and default. null: also say whether it may be null."""
    kinds = [kind for kind in value.get("anyOf", [value]) if null or kind.get("type") != "null"]
    words = " or ".join(dict.fromkeys(map(_kind, kinds)))
    default = value.get("default")
    return words if default in (None, [], {}, "") else f"{words}; default `{default}`"


def _kind(kind: dict[str, Any]) -> str:
    """One of the types that a JSON schema allows, with those of its limits that are below 10^12."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        word = f"[{name}](#{name.lower()})"
    elif "enum" in kind:
        word = ", ".join(f"`{choice}`" for choice in kind["enum"])
    elif "prefixItems" in kind:
        word = f"[{', '.join(map(_schema_type, kind['prefixItems']))}]"
    elif kind.get("type") == "array":
        word = f"list of {_plural(_schema_type(kind['items']))}" if kind.get("items") else "list"
    elif kind.get("type") == "object":
        inner = kind.get("additionalProperties")
        word = f"mapping from string to {_schema_type(inner)}" if isinstance(inner, dict) and inner else "mapping"
    else:
        word = str(kind.get("const", kind.get("type", "any")))
    return " ".join(
        [word, *(f"{sign} {kind[key]:g}" for key, sign in _BOUNDS.items() if abs(kind.get(key, 1e12)) < 1e12)]
    )


_PLURAL = re.compile(r"\b(string|integer|number|boolean|mapping|list)\b(?=$| or | from | to | of | ≥| >| ≤| <)")
"""A word for a type, which takes a plural in a list or mapping."""


def _plural(words: str) -> str:
    """Return a type's words in the plural; names and choices remain unchanged."""
    return words if words.startswith("[") else _PLURAL.sub(r"\1s", words)


def protocol() -> str:
    """The page on servers and their replies: what is read and sent, what is compared, how replies end, and notes."""
    profiles = engines.profiles()
    facts = [fact for one in profiles for fact in one.facts] + list(discovery.LISTED)
    names = {kind: {fact.name.partition(".")[0] for fact in facts if fact.kind == kind} for kind in ("model", "host")}
    rejected, warned = (_quoted(sorted(names[kind])) for kind in names)
    pages = [(one.name, _signs(one), _quoted(["/v1/models", *one.pages])) for one in profiles]
    neutral = [
        (one.name, ", ".join(f"`{name}` {json.dumps(value)}" for name, value in one.neutral.values.items()))
        for one in profiles
        if one.neutral is not None
    ]
    checks = sorted(select(), key=lambda check: check.group)
    ends = [(ENDING_MEANINGS[end], _quoted(sorted(words.split()))) for end, words in WORDS.items()]
    return (
        f"# Servers and replies\n\n{NOTE}## Pages that a run reads\n\n"
        + table(("server", "identified by", "pages"), [*pages, ("others (TensorRT-LLM, Ollama …)", "", "all of these")])
        + "## Values that a run sends\n\n"
        + table(("engine", "sent by default"), neutral)
        + "## Facts that are compared\n\nA change in these stops a resumed run:\n\n"
        + f"{rejected}\n\nA change in these only causes a warning:\n\n{warned}, `engine`, `server`\n\n"
        + "## Finish reasons\n\nCase is ignored.\n\n"
        + table(("meaning", "finish reasons"), ends)
        + "## Failed requests\n\nWhat happens to a request, by what happened earlier in the session. "
        + "For the words, see [reliability](../reliability.md#failed-requests).\n\n"
        + table(PAST, [(SIGNS[sign], *(FAULT_NAMES[fault] for fault in faults)) for sign, faults in FAULTS.items()])
        + "## Checks of a probe\n\n"
        + table(("group", "check", "why it matters"), [(check.group, f"`{check.name}`", check.why) for check in checks])
        + "## Notes\n\nScores count the replies with each note.\n\n"
        + "".join(f"- {note}\n" for note in sorted(DOUBTFUL))
    )


ENDING_MEANINGS: dict[Ending, str] = {
    "end": "the model ended the reply",
    "cut": "truncated by a limit",
    "break": "the request fails and is retried",
    "filter": "noted as a filter or a refusal",
}
"""Meaning of a finish reason → how the page puts it."""


PAST = (
    "failure",
    "no reply yet",
    "no reply yet, and all requests fail alike",
    "no reply yet, but another endpoint may work",
    "endpoint has replied",
    "since its last reply, only this question has failed",
    "others pass",
)
"""Headings of `FAULTS`."""

SIGNS: dict[Sign, str] = {
    "unsent": "no connection",
    "away": "connection closed before the reply, 502, 504",
    "busy": "429, 503, 529, or a message about a limit, load or a start",
    "still busy": "the same after a wait with no other question in flight; the seventh of a sample, the fourteenth, …",
    "faulty": "other 5xx, any other message in place of a reply",
    "broken": "a timeout, a connection lost after tokens",
    "unreadable": "a compressed, malformed, incomplete or aborted reply, or one from a different API",
    "rejected": "400, 413, 422, 501 …",
    "refused": "404, 403, a redirect, an unknown model",
    "no account": "401, 402, exhausted quota, a 403 that mentions the key",
    "too long": "the prompt exceeds the context",
    "runaway": "an endless reply",
}
"""Failure → how the page puts it."""

FAULT_NAMES: dict[Fault, str] = {
    "endpoint": "wait",
    "pace": "slow down",
    "chance": "try",
    "question": "own",
    "payload": "give up",
    "run": "stop",
}
"""Fault → what the page calls it."""


def _quoted(words: Iterable[str]) -> str:
    """The words as code, with commas."""
    return ", ".join(f"`{word}`" for word in words)


def _signs(one: EngineProfile) -> str:
    """How a model list identifies the engine."""
    if one.hides_behind:
        return f"a model called `{one.hides_behind}`"
    return f"`owned_by: {one.owned_by}`" + (f", or a `{one.marks}`" if one.marks else "")


def python() -> str:
    """The page on Python: every name in `harness.__all__` with its signature and docstring."""
    text = "# Python API\n\n" + NOTE
    text += "The public names in the `harness` package. For a guide with examples, see [Python](../python.md).\n\n"
    for name in sorted(harness.__all__, key=lambda exported: (exported[0].isupper(), exported)):
        value = getattr(harness, name)
        if not callable(value):
            continue
        prose = inspect.cleandoc(value.__doc__ or "")
        text += f"## `{name}`\n\n```text\n{_signature(name, value)}\n```\n\n{_prose(prose)}\n\n"
        if value is RunOptions:
            text += "Keys and values are the same as [in a sweep file](sweep.md#run).\n\n"
        elif inspect.isclass(value):
            for key, member in vars(value).items():
                inner = member.fget if isinstance(member, property) else member
                if not key.startswith("_") and inspect.isfunction(inner) and inner.__doc__:
                    shown = f".{key}" if isinstance(member, property) else _signature(f".{key}", inner)
                    text += (
                        f"`{' '.join(shown.split())}`: {' '.join(_prose(inspect.cleandoc(inner.__doc__)).split())}\n\n"
                    )
    return text


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A function's signature as callers write it; a long signature has one parameter per line, and the options of a run
    count as one parameter.
    """
    if inspect.isclass(function) and issubclass(function, Options):  # its reported signature varies with earlier calls
        return f"{name}(**options)"
    signature = inspect.signature(function)
    of_run = options_of(RunOptions).keys() & signature.parameters.keys()
    takes_run = len(of_run) > 20
    left_out = {"self", *(of_run - {"benchmarks"} if takes_run else ())}
    parameters = [_parameter(each) for each in signature.parameters.values() if each.name not in left_out]
    if takes_run:
        parameters.append("**options: RunOptions")
    returned = signature.return_annotation
    back = "" if returned in (inspect.Signature.empty, None, "None") else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(parameters)}){back}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){back}"


def _parameter(parameter: inspect.Parameter) -> str:
    """A parameter with its type and default; `…` for a default without a short form."""
    text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        text += " = …" if " at 0x" in default else f" = {default}"
    return text


def _annotation(stated: Any) -> str:
    """A type as source text."""
    return stated if isinstance(stated, str) else inspect.formatannotation(stated)


def _prose(text: str) -> str:
    """A text with HTML characters escaped; the example at its end becomes a code block."""
    words, sign, example = text.partition("\n\n>>> ")
    return words.replace("<", "&lt;") + (f"\n\n```pycon\n>>> {example}\n```" if sign else "")


def keywords() -> str:
    """The stub `harness.options.keywords`, with the typed keywords of the Python functions; it is never run."""
    text = '"""The keywords of Python\'s functions, for type checkers and editors.\n\n'
    text += 'Written by `python -m tools.reference` from the declarations in `harness.options`.\n"""\n\n'
    text += "from collections.abc import Mapping, Sequence\n"
    text += "from os import PathLike\nfrom typing import Any, Literal, TypedDict\n\n"
    text += (
        "from harness.core.literals import (\n    ApiName,\n    OutputsFormat,\n"
        "    SecondGraderName,\n    Thinking,\n    ToolChoice,\n    TransportName,\n)\n"
    )
    text += "\nFilePath = str | PathLike[str]\nTexts = str | Sequence[str]\n"
    for name, declared in KEYWORDS.items():
        declared_options = options_of(declared)
        text += f'\nclass {name}(TypedDict, total=False):\n    """The fields of `{declared.__name__}`. '
        text += "None leaves an option at its default"
        if "seed" in declared_options and declared_options["seed"].default is not None:
            text += "; `seed=None` sends no seed"
        text += "."
        wide = len(declared_options) > WIDE
        text += '\n\n    Wide: a field for each option.\n    """\n\n' if wide else '"""\n\n'
        text += "".join(
            f"    {option.name}: {option.accepts}\n"
            for option in declared_options.values()
            if not (option.argument or option.default is ...)
        )
    return text


KEYWORDS: dict[str, type[Options]] = {
    "RunKeywords": RunOptions,
    "ScoreKeywords": ScoreOptions,
    "PlanKeywords": PlanBasis,
    "CompareKeywords": CompareOptions,
    "VerifyKeywords": VerifyOptions,
    "MergeKeywords": MergeOptions,
    "ReportKeywords": ReportOptions,
    "ExportKeywords": ExportOptions,
    "GradeKeywords": GradeOptions,
    "AuditKeywords": AuditOptions,
    "ProbeKeywords": ProbeOptions,
}
"""Keyword class → the options from which it is generated."""

WIDE = 25
"""Largest number of fields that a class may have without explaining why it has so many."""

MODULES = {"harness/options/keywords.pyi": keywords}
"""File of the checkout that is generated from declarations → the function that generates its content."""

PAGES = {
    "commands.md": commands,
    **{f"commands/{name}.md": partial(command_page, name) for name in COMMANDS},
    "run-folder.md": run_folder,
    "json.md": json_output,
    "environment.md": environment,
    "names.md": names,
    "sweep.md": sweep,
    "protocol.md": protocol,
    "python.md": python,
}


def main(folder: Path) -> None:
    """Write all pages into `folder`."""
    for name, page in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(page().rstrip("\n") + "\n", "utf-8")


if __name__ == "__main__":
    for module, source in MODULES.items():
        (ROOT / module).write_text(source(), "utf-8")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/reference")
