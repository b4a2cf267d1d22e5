"""`harness ctl`: steer a run while it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.help import SpelledCommand, spell
from harness.cli.json_output import json_option, say
from harness.core.errors import UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.generation.network.control import Answer

VERBS = ("status", "concurrency", "pause", "resume", "drain", "cancel", "reload")


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.generation.network.control import Answer

    return Answer


@click.command("ctl", cls=SpelledCommand)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("verb", type=click.Choice(VERBS))
@click.argument("value", default="")
@json_option(_prints, "the answer")
def command(run: Path, verb: str, value: str, as_json: bool) -> None:
    """Tell the run that is going on in the folder RUN what to do. Every command is noted in its log.jsonl.

    \b
    harness ctl results/qwq-32b status
    harness ctl results/qwq-32b concurrency 128
    harness ctl results/qwq-32b pause | resume
    harness ctl results/qwq-32b drain            finish the requests in flight, then end; the rest stays missing
    harness ctl results/qwq-32b cancel aime-7:3  skip this sample in this session; aime-7: all of the question
    harness ctl results/qwq-32b reload           read the file of --endpoints again
    """
    import msgspec

    from harness.generation.network.control import ControlCommand, send
    from harness.runs import RunFolder

    answer = send(RunFolder.open(run), ControlCommand(verb=verb, value=value))
    if as_json:
        say(msgspec.structs.replace(answer, sentence=_in_words(answer)))
    elif answer.refused:
        raise UsageError(_in_words(answer))
    else:
        _show(answer)
    sys.exit(UsageError.exit_code if answer.refused else 0)


def _in_words(answer: Answer) -> str:
    """The run's answer in words; the options in it are flags of `harness run`."""
    from harness.cli.run import command as run

    return spell(answer.sentence, run)


def _show(answer: Answer) -> None:
    """Print the run's answer, with its progress if the answer has it."""
    click.echo(visible(_in_words(answer), 500))
    if answer.facts:
        from harness.cli.status import progress_lines

        for line in progress_lines(answer.facts):
            click.echo(f"  {line}")
