"""Writes a run's options as the command that repeats the run, with every word quoted for the shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import click

from harness.asking.options import JudgeOptions
from harness.core.options import options_of
from harness.verbs.again import NO_JUDGE


def run_command(options: Mapping[str, Any], judge: Mapping[str, Any] = NO_JUDGE) -> str:
    """The command `harness run …` with these options, and by a judge if there are fields of `JudgeOptions`.

    options: see `verbs.again.options_again`.
    """
    from harness.cli.run import command

    parameters = {parameter.name: parameter for parameter in command.params}
    words = ["harness", "run", *([",".join(options["benchmarks"])] if "benchmarks" in options else [])]
    for name, value in options.items():
        if name != "benchmarks":
            words += _words(parameters[name], value)
    return shlex.join([*words, *_judge_words(judge)])


def score_command(run: str, judge: Mapping[str, Any]) -> str:
    """The command `harness score RUN` by a judge if there are fields of `JudgeOptions`."""
    return shlex.join(["harness", "score", run, *_judge_words(judge)])


def serve_command(engine: str, model: str, fields: Mapping[str, Any]) -> str:
    """The command `harness serve …` with these fields of `ServerSpec`, which leaves the server running."""
    from server_launchers.spec import OPTIONS, words_of  # reports of other servers need none

    words = words_of({name: fields[name] for name in OPTIONS if name in fields})
    return shlex.join(["harness", "serve", engine, model, *words, "--detach"])


def _judge_words(judge: Mapping[str, Any]) -> list[str]:
    """The words that name the judge; none without one."""
    if not judge:
        return []
    address = f"@{judge['base_url'][0]}" if judge.get("base_url") else ""
    keyed = (
        f",{name}={json.dumps(value) if isinstance(value, bool) else value}"
        for name, value in judge.items()
        if name not in ("model", "base_url") and name in options_of(JudgeOptions) and value is not False
    )
    return ["--judge", f"{judge['model']}{address}{''.join(keyed)}"]


def _words(parameter: click.Parameter, value: Any) -> Iterator[str]:
    """Yield the words of the command line that give `parameter` this value."""
    flag = parameter.opts[-1]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        yield flag
        return
    for member in value if parameter.multiple else [value]:
        yield flag
        if isinstance(member, dict):
            yield json.dumps(member)
        elif isinstance(member, list):
            yield ",".join(map(str, member))
        else:
            yield "none" if member is None else str(member)
