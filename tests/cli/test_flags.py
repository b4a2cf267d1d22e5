"""The flags of a command are what its options declare: a line without flags sets nothing, and each flag its option.

Every command beside every option, through both doors: taken by both, or refused by both in the same sentence.

For: harness.cli.flags.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_origin

import click
import pytest
import yaml
from click.testing import CliRunner
from pydantic import TypeAdapter, ValidationError

import harness
from harness import rewards as harness_rewards
from harness.benchmarks import catalog
from harness.cli.flags import command_of, described_server, judge_of, options_typed
from harness.cli.foreign.tables import answers_to
from harness.cli.main import cli
from harness.core.errors import ServerError, UsageError
from harness.core.option_kinds import COMMAS, LIMITS, PRICES, Kind
from harness.core.options import Option, Options, options_of
from harness.options.commands import COMMANDS, all_options, options_class
from harness.options.judge import JudgeOptions
from harness.options.run import RunCommand, RunOptions
from harness.preparing import servers
from harness.preparing.server_start import spec_without_download
from tests.budget import SEED, examples, share_of
from tests.conftest import CHECKOUT
from tests.system.command import harness as command

CASES = [
    (command, name)
    for command, declared in all_options().items()
    for name, option in options_of(declared).items()
    if not option.argument and (command == "run" or name not in options_of(RunOptions))
]
"""The flags of a run are the same for every command that makes runs: they are tried once."""


def least(command: str) -> list[str]:
    """The least that a command must be given."""
    needed = [parameter for parameter in command_of(command).params if parameter.required]
    return [word for one in needed for word in ([one.opts[-1], "a"] if isinstance(one, click.Option) else ["a"])]


RAW: dict[Any, Callable[[random.Random], Any]] = {
    float: lambda rng: rng.choice([rng.uniform(0, 2), rng.uniform(0, 99), 10 ** rng.uniform(-9, 9), 1e6, 5e-05]),
    int: lambda rng: rng.randint(-3, 10 ** rng.randint(1, 9)),
    str: lambda rng: "".join(rng.choice("aB7-_=:/. ,'é\"") for _ in range(rng.randint(1, 8))).strip(),
    bool: lambda rng: rng.random() < 0.5,
    dict: lambda rng: {"a": rng.choice([1.5e-7, True, None, "x,y"]), "b": {"c": [1, "é"]}},
}
"""Type → a value of it, odd in its form."""
RAW[Path] = lambda rng: Path(RAW[str](rng) or "a")
RAW_KINDS: dict[Kind, Callable[[random.Random], Any]] = {
    LIMITS: lambda rng: (
        f"total={rng.randint(1, 10**6)}.{rng.randint(0, 9999)}s,token_gap={rng.randint(1, 9)}.{rng.randint(0, 10**6)}ms"
        f",first_token=0.{rng.randint(1, 10**9 - 1):09}ms,share={rng.randint(1, 99)}.{rng.randint(0, 10**6 - 1):06}%"
    ),
    PRICES: lambda rng: (10 ** rng.uniform(-8, 3), rng.uniform(0, 99)),
    COMMAS: lambda rng: tuple(f"a{rng.randint(0, 99)}" for _ in range(rng.randint(1, 3))),
}
"""Kind → a value that it takes."""


RAW_NAMED: dict[str, Callable[[random.Random], Any]] = {
    "shard": lambda rng: f"{rng.randint(1, 4)}/{rng.randint(4, 9)}",
    "tool": lambda rng: f"python,steps={rng.randint(1, 9)}",
    "forget": lambda rng: f"2026-12-{rng.randint(10, 31)}",
}
"""Name of an option with a form of its own → a value of it."""
UNPRINTED = {"serve", "tools"}
"""Options whose value in Python is an object that no command line has; secrets are never printed, either."""


def raw(option: Option, rng: random.Random) -> Any:
    """A value for an option, by its name, its kind or its type."""
    if option.name in RAW_NAMED:
        return RAW_NAMED[option.name](rng)
    if option.choices:
        return rng.choice(option.choices)
    if option.kind in RAW_KINDS and option.item_type not in (int, float):
        return RAW_KINDS[option.kind](rng)
    draw = RAW.get(dict if get_origin(option.type) is dict else option.item_type, RAW[str])
    return tuple(draw(rng) for _ in range(rng.randint(1, 3))) if option.is_list else draw(rng)


@pytest.mark.parametrize(("command", "name"), CASES)
def test_what_an_option_prints_is_read_back_as_itself(command: str, name: str) -> None:
    option, rng = options_of(options_class(command))[name], random.Random(f"{SEED} {command} {name}")
    if option.secret or name in UNPRINTED:
        return
    flag = next(one for one in command_of(command).params if one.name == name)
    reader, n_read = TypeAdapter(option.annotation), 0
    for number in range(160):
        if n_read and number >= examples(160):
            break
        try:
            value = reader.validate_python(raw(option, rng))
        except (ValidationError, UsageError):  # not a value of this option
            continue
        words = option.arguments(value)
        typed = click.Command("x", params=[flag], add_help_option=False).make_context("x", [*words]).params[name]
        if words:
            assert reader.validate_python(typed) == value, words
        else:
            assert value in (option.default, (), None, {}), value
        n_read += 1
    assert n_read, "no value of this option was tried"


def parsed(command: str, words: list[str]) -> Options:
    """The options of a command line."""
    return options_typed(command_of(command).make_context(command, list(words)), options_class(command))


@pytest.mark.parametrize("command", [command for command, row in COMMANDS.items() if row.options])
def test_what_is_not_typed_is_not_set(command: str) -> None:
    table = options_of(options_class(command))
    named = {name for name in parsed(command, least(command)).explicit if not table[name].argument}
    assert named == {name for name, option in table.items() if option.default is ... and not option.argument}


def shown(parameter: click.Option) -> str:
    """What the help says of a flag."""
    record = parameter.get_help_record(click.Context(click.Command("any")))
    return record[1] if record else ""


@pytest.mark.parametrize(("command", "name"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_flag_sets_its_option_and_says_what_the_declaration_says(command: str, name: str) -> None:
    option = options_of(options_class(command))[name]
    (parameter,) = (one for one in command_of(command).params if one.name == name)
    assert isinstance(parameter, click.Option)
    assert shown(parameter).split()[0] == option.help.split()[0]

    def value(*typed: str) -> Any:
        needed = [] if parameter.required else least(command)
        context = command_of(command).make_context(command, [*needed, *typed], resilient_parsing=parameter.required)
        return context.params[name]

    if option.type is bool:
        assert value(parameter.opts[-1]) is (option.default is not True)
        if option.default is None:
            assert value(parameter.secondary_opts[0]) is False
    else:
        typed = option.choices[0] if option.choices else "7"
        assert value(parameter.opts[-1], typed) in (typed, 7, 7.0, (typed,), (7,))


def test_what_may_be_repeated_is_kept_whole() -> None:
    given = parsed("run", ["--header", "A:1", "--header", "B:2", "--drop", "top_p", "--drop", "top_k"])
    assert isinstance(given, RunCommand)
    assert ([name for name, _ in given.header], given.drop) == (["A", "B"], ("top_p", "top_k"))


def every_command() -> Iterator[tuple[click.Command, click.Context]]:
    """Each command of `harness`, those of groups included, and the context of its group."""

    def within(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
        for name in group.list_commands(context):
            verb = group.get_command(context, name)
            assert verb is not None
            inner = click.Context(verb, parent=context, info_name=name)
            if isinstance(verb, click.Group):
                yield from within(verb, inner)
            else:
                yield verb, context

    yield from within(cli, click.Context(cli, info_name="harness"))


def test_no_option_of_any_command_swallows_the_next_one() -> None:
    """Each option with a value beside each other option: refused; joined by `=`, or with a plain value: the next one
    is read. One that accepts a single value is refused when it is repeated.
    """
    pairs = 0
    for verb, parent in every_command():
        options = [one for one in verb.params if isinstance(one, click.Option)]
        names = [name for one in options for name in (*one.opts, *one.secondary_opts)]
        for option in (one for one in options if not one.is_flag):
            for flag in option.opts:
                for following in share_of(names):
                    pairs += 1
                    with pytest.raises(UsageError, match=f"^{flag}: expected a value, but found the option"):
                        verb.make_context("x", [flag, following], parent=parent)
                with pytest.raises((UsageError, click.UsageError), match=f"{flag}.*(expected a value|requires an arg)"):
                    verb.make_context("x", [flag, "--", "x"], parent=parent)
                if not option.multiple:
                    with pytest.raises(UsageError, match=f"^{option.opts[-1]}: it accepts one value"):
                        verb.make_context("x", [flag, "1", option.opts[-1], "1"], parent=parent)
    assert pairs > 1_000


def test_a_value_that_begins_with_dashes_is_joined_to_its_option() -> None:
    assert parsed("run", ["--out=--dry-run", "--temperature", "-0"]).explicit == {
        "out": Path("--dry-run"),
        "temperature": 0.0,
    }
    assert parsed("grade", ["--grader", "m:f", "--", "--out", "--out"]).explicit["grader"] == "m:f"


def test_the_options_of_a_server_are_read_as_the_flags_of_serve_are() -> None:
    options = ["threads=3", "max_model_len=2048", "eager=true", "env=A=b=c", "engine-flag=--x", "engine-flag=1"]
    fields = described_server(options)
    assert fields["environment"] == {"A": "b=c"}
    assert fields["extra_flags"] == ("--x", "1")
    spec = spec_without_download(engine="llama_cpp", model="m", threads=fields["threads"], context=fields["context"])
    assert (spec.threads, spec.context, fields["eager"]) == (3, 2048, True)
    for wrong, says in {
        "tpp=2": r"there is no server option tpp\. Did you mean pp, tp\?",
        "tp=x": "Invalid value for 'tp'",
        "tp": "expected KEY=VALUE",
    }.items():
        with pytest.raises(UsageError, match=says):
            described_server([wrong])


@pytest.mark.parametrize(
    ("typed", "model", "address"),
    [
        ("org/m@http://h:8000/v1", "org/m", ("http://h:8000/v1",)),
        ("org/m@main@unix:///s", "org/m@main", ("unix:///s",)),
        ("org/m@main", "org/m@main", ()),
        ("org/m", "org/m", ()),
        ("org/m@refs/pr/1", "org/m@refs/pr/1", ()),
    ],
)
def test_the_address_of_a_judge_stands_behind_its_name(typed: str, model: str, address: tuple[str, ...]) -> None:
    for keys, scope in (("", "open"), (",scope=all,prompt=limo", "all")):
        judge = judge_of(f"{typed}{keys}")
        assert judge is not None
        assert (judge.model, judge.base_url, judge.scope) == (model, address, scope)


@pytest.mark.parametrize(
    "tail", ["h:8000/v1", "me:sk-1@h", "me:sk-1@h:8000/v1", "h.org/v1?key=sk-1", "h?key=sk-1", "h.org/sk-1", "[::1]:80"]
)
def test_a_judge_address_without_a_scheme_is_refused_and_not_repeated(tail: str) -> None:
    with pytest.raises(UsageError, match="an address must begin with http://") as refused:
        judge_of(f"org/m@{tail},scope=all")
    assert tail not in str(refused.value)


def test_an_unknown_judge_server_gets_an_address_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path))
    monkeypatch.delenv(servers.URL_VARIABLE, raising=False)
    judge = judge_of("m@noserver")
    for who, flag in ((judge, "--judge MODEL@URL"), (RunOptions(model="m"), "base_url")):
        assert who is not None
        with pytest.raises(ServerError, match=f"no server was found: set .*{flag}"):
            servers.find(who)


PYTHON: dict[str, Callable[..., Any]] = {
    "run": harness.run,
    "sweep": partial(harness.sweep, "file.yaml"),
    "score": partial(harness.score, "run"),
    "plan": partial(harness.plan, "run", 2),
    "compare": partial(harness.compare, ["run", "other"]),
    "verify": partial(harness.verify, "run"),
    "merge": partial(harness.merge, ["run"], out="joined"),
    "report": partial(harness.report, "run"),
    "export": partial(harness.export, "run", "trl"),
    "audit": partial(harness.audit, "run"),
    "grade": partial(harness.grade, "1", "1"),
    "probe": partial(harness.probe, "http://127.0.0.1:9"),
}
DECLARED = all_options()
OPTIONS = [pair for declared in DECLARED.values() for pair in options_of(declared).items()]
FLAGS = {name: one.flag_word for name, one in OPTIONS}
ANYWHERE = {name for name, one in OPTIONS if not one.argument}
FIRST = {flag: name for name, flag in reversed(FLAGS.items())}
"""Flag → the option that a command without such a flag takes it for: two options may have one flag."""


OF_COMMANDS = {"serve_option", "quiet", "as_json", "dry_run", "scores", "judge", "candidates"} | {
    *("print_schema", "list_suites", "verify", "follow", "every_table", "show_samples")
}
"""Options that only a command line takes: of what it prints, or in another form than in Python."""


def taken_by_python(command: str) -> set[str]:
    return {*inspect.signature(getattr(PYTHON[command], "func", PYTHON[command])).parameters}


@pytest.mark.parametrize("command", PYTHON)
def test_python_takes_every_option_of_a_command(command: str) -> None:
    own = {name for name, one in options_of(DECLARED[command]).items() if not one.argument}
    # A judge is measured by the command alone.
    left = {"audit": {"labels", "prices"}, "sweep": {"on"}}.get(command, set()) & own
    assert own - taken_by_python(command) - OF_COMMANDS == left


@pytest.mark.parametrize("command", PYTHON)
def test_both_doors_refuse_an_option_of_another_command_in_one_sentence(command: str) -> None:
    own = options_of(DECLARED[command])
    flags = {flag for one in command_of(command).params for flag in one.opts}
    meant = taken_by_python(command)  # `runs` of a comparison
    others = [name for name in ANYWHERE - set(own) if FLAGS[name] not in flags and name not in meant]
    # A word of other tools has a sentence of its own on the command line.
    others = [name for name in others if not [*answers_to(command, FLAGS[name])]]
    assert others
    for name in share_of(sorted(name for name in others if FIRST[FLAGS[name]] == name)):
        done = CliRunner().invoke(cli, [*command.split(), FLAGS[name], "x"])
        assert isinstance(done.exception, UsageError), (name, done.exception, done.output)
        with pytest.raises(UsageError) as error:
            PYTHON[command](**{name: "x"})
        assert error.value.sentence.startswith(f"{name}: ")
        assert done.exception.sentence == error.value.sentence.replace(name, FLAGS[name], 1)


CANARIES = ("sk-canary-0123456789abcdef", "9f8e7d6c5b4a32100123456789abcdef")


def _wrong_values(option: Option, canary: str) -> list[Any]:
    """Values that hold the canary in a type that the option does not take; a key's text too, where one is no path."""
    nested = [[[canary]], ({canary: canary},), canary.encode(), SimpleNamespace(x=canary)]
    return nested if option.type is Path and not option.secret else [*nested, "{" + canary, [canary]]


def test_no_refused_option_shows_a_key_in_a_traceback(tmp_path: Path) -> None:
    """Each misspelled name and each option with a wrong value, in Python. Wrong twin: a wrong number is shown."""
    texts, file = [], tmp_path / "sweep.yaml"
    classes: set[type[Options]] = {*DECLARED.values(), JudgeOptions}
    # Each declaration once: most verbs take the options of a run.
    declarations = {
        repr(one): (name, one, declared) for declared in classes for name, one in options_of(declared).items()
    }
    file.write_text("models: [m]\nbenchmarks: [demo]\n")
    python = PYTHON | {"sweep": partial(harness.sweep, file), "plan": partial(harness.plan, "aime24:2", 2)}
    calls: list[Callable[[], Any]] = []
    for canary in CANARIES:
        for name in ("api_key", "extra_bdy", "judge_header", "judge_extra_body"):
            calls += [partial(function, **{name: {"api_key": [canary]}}) for function in python.values()]
        for name, one, declared in declarations.values():
            calls += [partial(declared.of, **{name: value}) for value in _wrong_values(one, canary)]
    for call in calls:
        try:
            call()
        except UsageError as error:
            texts.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")  # All that a traceback can show.
    assert len(texts) > 800
    assert not [text for text in texts if any(canary in text for canary in CANARIES)]
    with pytest.raises(UsageError, match=r"^samples=0: expected a number"):
        harness.run("demo", samples=0)
    with pytest.raises(UsageError, match=r"^extra_body: expected values that can be represented in JSON .*bytes"):
        harness.run("demo", extra_body={"a": b"\xff"})


def test_help_says_what_an_option_means_to_the_verb() -> None:
    helps = {
        command: {one.name: shown(one) for one in command_of(command).params if isinstance(one, click.Option)}
        for command in DECLARED
    }
    assert "`aime24:64` sets the number" in helps["run"]["samples"]
    assert len({helps[command]["out"] for command in ("run", "sweep", "score")}) == 3


# -- templates and environment defaults --------------------------------------------------------------------------------


TEMPLATES = CHECKOUT / "datasets" / "templates"
SWEEPS = ("checkpoint", "hosted", "comparison", "suite")
FIELDS = json.loads((Path(__file__).parents[1] / "exports" / "trainer_fields.json").read_text("utf-8"))
"""Settings file → the fields that its trainer publishes, with their types, as its argument classes declare them."""
PLAIN = {"bool": bool, "int": int, "float": (int, float), "str": str, "list": list}


def unfit(name: str, settings: dict[str, Any]) -> list[str]:
    """The settings that the trainer of this file does not know, or would read as another type."""
    fields = FIELDS[name]["fields"]

    def fits(kind: str, value: Any) -> bool:
        return isinstance(value, PLAIN.get(kind, object)) and not (isinstance(value, bool) and kind in ("int", "float"))

    return [key for key, value in settings.items() if key not in fields or not fits(fields[key], value)]


@pytest.mark.parametrize("name", FIELDS)
def test_each_setting_of_training_is_one_that_its_trainer_publishes(name: str) -> None:
    settings = yaml.safe_load(((TEMPLATES / "training") / name).read_text("utf-8"))
    assert unfit(name, settings) == []
    assert unfit(name, {**settings, "learning_rat": 1e-6}) == ["learning_rat"]
    assert unfit(name, {**settings, "bf16": "yes", "learning_rate": "1e-6"}) == ["learning_rate", "bf16"]


def test_training_gets_data_settings_rewards_and_launch_lines(tmp_path: Path) -> None:
    folder = TEMPLATES / "training"
    lines = (folder / "README.md").read_text("utf-8")
    for name in FIELDS:
        assert len(re.findall(rf"^[^#\n].*{name}", lines, re.MULTILINE)) == 3, "one node, and each of two"
    for settings in (yaml.safe_load((folder / name).read_text("utf-8")) for name in FIELDS):
        for path in settings.get("reward_funcs", ()):
            assert callable(getattr(harness_rewards, path.rpartition(".")[2], None)) or path in {
                *open_r1_names(folder),
                *THEIRS,
            }
    # The file of its checkpoints is one that the sweep takes, for the folder that the trainer writes.
    content = lines.partition("<<'END'\n")[2].partition("END\n")[0]
    (tmp_path / "checkpoints.yaml").write_text(content, encoding="utf-8")
    saved = yaml.safe_load((folder / "sft.yaml").read_text("utf-8"))["output_dir"]
    (tmp_path / saved / "checkpoint-500").mkdir(parents=True)
    planned = command(tmp_path, "sweep", "checkpoints.yaml", "--dry-run")
    assert "checkpoint-500" in planned.out, planned.err
    assert "\nharness sweep checkpoints.yaml\n" in lines


THEIRS = ("tag_count",)
"""Rewards of open-r1 that its script leaves as they are."""


def open_r1_names(folder: Path) -> set[str]:
    """open-r1's names of the rewards that the script replaces by ours, each of which we have."""
    functions = set(re.findall(r'"(\w+_reward)"', (folder / "open_r1_grpo.py").read_text("utf-8")))
    assert all(callable(getattr(harness_rewards, name)) for name in functions)
    return {name.removesuffix("_reward") for name in functions}


@pytest.mark.parametrize("kind", SWEEPS)
def test_each_template_is_a_sweep_that_can_be_planned(tmp_path: Path, kind: str) -> None:
    path = Path(shutil.copy(TEMPLATES / f"{kind}.yaml", tmp_path / "run.yaml"))
    content = yaml.safe_load(path.read_text())
    for name in content.get("benchmarks", ()):
        catalog.load(name.partition(":")[0])
    # Its benchmarks are not on this machine: those of the demo in their place.
    changed = re.sub(r"(?m)^benchmarks: .*$", "benchmarks: [demo:2]", path.read_text())
    path.write_text(changed if "benchmarks:" in changed else changed + "benchmarks: [demo:2]\n")
    done = command(tmp_path, "sweep", "run.yaml", "--dry-run", extra={"DEEPSEEK_API_KEY": "sk-none"})
    assert done.code == 0, done.err
    assert ("vllm serve /path/to/checkpoint" in done.out) == (kind != "hosted")
    assert done.out.count("+demo") == (2 if kind == "comparison" else 1)
