"""Prints our equivalent of another tool's command line, after it has passed its own parser and, as far as that sends no
request, its own dry run.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from harness.cli.flag_spelling import typed_in
from harness.cli.flags import options_typed, server_fields, typed_run_options
from harness.cli.foreign.command_line import translation_of
from harness.cli.foreign.translation import SWEEP_FILE, Translation
from harness.cli.help import flags_and_arguments, single_value_flags
from harness.core.errors import Exit, HarnessError, UsageError
from harness.core.sanitize import visible
from harness.core.secret import without_typed_secrets
from harness.options.commands import options_class
from harness.options.run import RunCommand, RunOptions
from harness.preparing.server_start import spec_without_download
from harness.progress.events import Watcher
from harness.sweeps import cells, sweep_runner
from server_launchers import replicas
from server_launchers.engines import table as engines
from server_launchers.machine.accelerators import Machine
from server_launchers.machine.ports import following

NOTHING_KNOWN = "the arguments contain no benchmark or model that the harness recognizes"


def translate(group: click.Group, ctx: click.Context, words: Sequence[str]) -> int | None:
    """Print our command on standard output, and the omitted flags on standard error; return the exit code, or None if
    the words are not a command line of a known tool. group: our commands.

    A command that does less than the other tool's is printed on standard error, and the exit code is that of a usage
    error.
    """

    def takes(named: Sequence[str]) -> Collection[str]:
        """The flags and arguments of one of our commands."""
        return flags_and_arguments(_command(group, ctx, named))

    translation = translation_of(words, takes)
    if translation is None:
        return None
    if translation.command:
        command = _command(group, ctx, translation.command)
        translation.keep_last(single_value_flags(command))
        _prove(translation, command)
    line = translation.line() if translation.command else ""
    if not line and not translation.lost:
        translation.lost["no equivalent command"] = NOTHING_KNOWN
    is_whole = bool(line) and not translation.lost
    if is_whole:
        click.echo(line)
    elif line:
        click.echo("\n".join(f"# not whole: {part}" for part in line.split("\n")), err=True)
    for reasons in (translation.lost, translation.notes):
        for reason in dict.fromkeys(reasons.values()):
            flags = ", ".join(flag for flag, why in reasons.items() if why == reason)
            click.echo(f"# {flags}: {reason}.", err=True)
    return Exit.YES if is_whole else UsageError.exit_code


def _command(group: click.Group, ctx: click.Context, words: Sequence[str]) -> click.Command:
    """The command of ours that the words name."""
    command: click.Command | None = group
    for word in words:
        command = command.get_command(ctx, word) if isinstance(command, click.Group) else command
    assert command is not None
    return command


def _prove(translation: Translation, command: click.Command) -> None:
    """Note why our command would be refused."""
    words = translation.words[len(translation.command) :]
    try:
        if translation.words:
            with typed_in(command):
                _check(translation, command, words)
    except (HarnessError, click.ClickException) as error:
        sentence = error.sentence if isinstance(error, HarnessError) else error.format_message()
        sentence = re.sub(rf"\S+/(?={SWEEP_FILE})", "", without_typed_secrets(sentence, words))
        translation.lost["the command is refused"] = visible(sentence.rstrip("."), 400)


def _check(translation: Translation, command: click.Command, words: Sequence[str]) -> None:
    """Parse our command and check whatever its dry run can check without requests or facts about this machine.

    Raises the command's own error.
    """
    name = translation.command[0]
    if name == "sweep":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / SWEEP_FILE
            path.write_text(translation.sweep_file, "utf-8")
            sweep_runner.estimates(cells.plan_of(str(path), {}, {}), Watcher())
        return
    context = command.make_context(name, [*words])
    if name == "serve":
        server, engine, model = server_fields(context.params), translation.command[1], context.params["model"]
        server |= {"extra_flags": context.params["extra_flags"]}
    else:
        options = options_typed(context, options_class(name))
        if not isinstance(options, RunCommand):
            return
        run = RunOptions(**typed_run_options(options))
        if run.serve is None:
            return
        server = dict(run.serve)
        engine, model = server.pop("engine"), server.pop("model", None) or run.model or ""
    spec = spec_without_download(engine, model, **server)
    of_engine = engines.engine_of(spec)
    facts = replace(of_engine.assumed_facts(spec), machine=Machine(None))
    ports = following(spec.port or replicas.DRY_PORT, replicas.ports_needed(spec))
    replicas.deploy(spec, of_engine, ports, facts)
