"""The `harness` command: finds the subcommand, and turns every expected failure into one sentence and an exit code
(`harness.core.errors.Exit`).
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import click

from harness.cli import terminal
from harness.cli.help import help_all
from harness.core import channel
from harness.core.errors import (
    HarnessError,
    Interrupted,
    Signalled,
    StoreError,
    UsageError,
    misspelled,
    stop_signal,
)
from harness.core.installation import __version__, give_home
from harness.core.sanitize import visible
from harness.core.secret import without_typed_secrets, without_user_info
from harness.options.commands import COMMANDS, GROUPS
from server_launchers import isolated


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands of ours, in workflow order. Help looks for no plug-in: `harness doctor` lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return self._plugin(cmd_name)
        if COMMANDS[cmd_name].options:
            from harness.cli.flags import command_of

            return command_of(cmd_name)
        group: click.Group = importlib.import_module(f"harness.cli.{cmd_name}").command
        return group

    @staticmethod
    def _plugin(name: str) -> click.Command | None:
        """The command of this name that another package offers; None if there is none. Raises `UsageError`."""
        from harness.core import plugins  # needed only for unknown commands

        command = plugins.load("command", name)
        if command is not None and not isinstance(command, click.Command):
            raise plugins.wrong_kind_error("command", name, command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names. For another tool's command line, print our commands and exit.

        Raises `click.UsageError`, which for a former command names its replacement.
        """
        word = args[0] if args else "-"
        if word not in COMMANDS and not word.startswith("-") and self._plugin(word) is None:
            from harness.cli.foreign import command_line, tables  # needed only for unknown commands
            from harness.cli.pasting import translate

            words = command_line.words_of(args)
            if (code := translate(self, ctx, words)) is not None:
                ctx.exit(code)
            if (instead := tables.tables()[tables.COMMON].commands.get(args[0])) is not None:
                ctx.fail(f"`harness {args[0]}` is not a command: {instead}.")
            if (program := command_line.program_in(words)) != args[0]:
                ctx.fail(f"the harness knows no tool {visible(program, 100)!r} (docs/moving.md).")
            ctx.fail(f"no command {visible(args[0], 100)!r}.{misspelled(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of `GROUPS`."""
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{width}}", command.line) for name, command in commands.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
        # An option may be typed by its name, as messages write it.
        "token_normalize_func": lambda word: word.replace("_", "-"),
    },
)
@click.option("--version", "-V", is_flag=True, help="Show the version, and the commit if known.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Benchmark harness for reasoning models: start a server, sample, score, report.

    \b
    harness doctor --demo                     try it: a small model on this CPU
    harness run aime24:64 --base-url URL      64 samples per question
    harness score results/MODEL               grade them
    harness report results/MODEL              a page with tables and plots
    harness compare results/A results/B       which is better, and how certain
    """
    ctx.with_resource(channel.warnings_to(terminal.warn, terminal.note))
    if version:
        from harness.runs.commit import commit  # imports much

        checkout = commit()
        click.echo(f"harness, version {__version__}" + (f" ({checkout})" if checkout else ""))
        ctx.exit()
    if ctx.invoked_subcommand is None:
        # A script that calls `harness` without arguments made a mistake, which the exit code must show.
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        click.echo(ctx.get_help())


cli.params.insert(0, help_all(hidden=False))


def _show_notes(stop: BaseException | None) -> None:
    """Print the notes of the work that `stop` ended: what it stored, and what it cost."""
    for note in getattr(stop, "__notes__", ()):
        click.echo(f"harness: {_printable(note)}", err=True)


def _command() -> object:
    """Run the command that was typed; return the exit code, or what click returns in its place.

    Only shell completion uses click's `main`, because that function itself exits on a closed pipe (exit code 1) and on
    Ctrl-C.
    """
    if "_HARNESS_COMPLETE" in os.environ:
        cli.main(prog_name="harness")
    with cli.make_context("harness", sys.argv[1:]) as context:
        return cli.invoke(context)


def main() -> NoReturn:
    """Entry point. An expected failure never shows a traceback."""
    _replace_closed_streams()
    _ignore_failed_messages()
    isolated.leave_no_core()
    # Characters that the locale cannot encode are shown escaped.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code()
    except BrokenPipeError:
        # The reader of the output or the messages has exited (`harness … | head`).
        _drop_output()
        # the exit code that a shell reports for a program killed by SIGPIPE
        code = 128 + 13
    sys.exit(code)


def _exit_code() -> int:
    """Run the command; on a failure, print its sentence. Raises `BrokenPipeError`."""
    give_home()
    try:
        with _signals_raise():
            code = _command()
        # Buffered output fails only when flushed; here the error can still be reported.
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.exceptions.Abort:  # from a prompt, such as that of `harness audit`
        code = 130
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(_printable(shown.getvalue()), nl=False, err=True)
        code = error.exit_code
    except HarnessError as error:
        click.echo(f"harness: {_printable(error.sentence)}", err=True)
        _show_notes(error)
        code = error.exit_code
    except KeyboardInterrupt as stop:
        click.echo(f"harness: stopped by {stop_signal(stop).name}.", err=True)
        _show_notes(stop)
        code = 128 + stop_signal(stop)
    except BrokenPipeError:
        raise
    except (MemoryError, RuntimeError, OSError) as error:
        code = UsageError.exit_code
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            _drop_output()
            sentence, code = f"cannot write the output: {error.strerror}", StoreError.exit_code
        elif not (sentence := _missing_resource(error)):
            raise
        click.echo(f"harness: {sentence}", err=True)
    return code if isinstance(code, int) else 0


def _missing_resource(error: Exception) -> str:
    """The sentence on a resource that the machine does not give this process; empty for any other error."""
    if isinstance(error, OSError):
        if error.errno in _UNSEEN and error.filename is not None:
            return f"cannot look at {visible(str(error.filename))}: {error.strerror}. Specify a path that you can read."
        # Only an error about the current folder has no file name.
        missing = NO_FOLDER if error.errno == errno.ENOENT and error.filename is None else ""
        return _TOO_LOW.get(error.errno or 0, missing)
    # Python has no separate exception for a thread that the system does not start.
    return TOO_LITTLE_MEMORY if isinstance(error, MemoryError) or "start new thread" in str(error) else ""


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """A `with` block in which SIGTERM and SIGHUP end the command as Ctrl-C does, with a message and an orderly
    shutdown.

    A signal that the caller ignores (nohup), or that already has a handler, is left alone. A signal stays one if a
    library replaces its exception, as pydantic does with a `SchemaError` while it builds a model.
    """
    received: list[int] = []

    def stop(signum: int, _frame: object) -> NoReturn:
        received.append(signum)
        raise Signalled(signum)

    usual: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        usual = {n: each for n, each in handlers.items() if each in (signal.SIG_DFL, signal.default_int_handler)}
    for number in usual:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as error:
        if not received or isinstance(error, KeyboardInterrupt | Interrupted | click.exceptions.Exit):
            raise
        raise Signalled(received[0]) from error
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


TOO_FEW_FILES = "the open-file limit is too low: raise it to at least 64 (ulimit -n 64)."
TOO_LITTLE_MEMORY = (
    "not enough memory: raise the limits on memory (ulimit -v) and threads (ulimit -u), "
    "or use a larger machine. Stored results are kept."
)
_TOO_LOW = {errno.EMFILE: TOO_FEW_FILES, errno.ENFILE: TOO_FEW_FILES, errno.ENOMEM: TOO_LITTLE_MEMORY}
NO_FOLDER = "the current folder no longer exists: change to an existing folder (cd), or use absolute paths."

_UNSEEN = {errno.EACCES, errno.ENAMETOOLONG}
"""Errors that leave it unknown whether a file exists: no access to the folder, or a name that is too long."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors when standard output, which has no file name, cannot accept more data."""


def _printable(message: str) -> str:
    """The message with control characters made visible and typed API keys removed; line breaks remain."""
    message = without_typed_secrets(message, sys.argv[1:])
    return "\n".join(visible(without_user_info(line)) for line in message.split("\n"))


def _replace_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed (`>&-`).

    Otherwise the next file to be opened would get the stream's number, and messages would be written to it.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        # Python's descriptors close on exec, but child processes need the three streams, too.
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, "r", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _ignore_failed_messages() -> None:
    """Let the command continue if its messages cannot be written (`_Messages`)."""
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):  # A caller in this process is collecting the messages in memory.
        return
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Messages(descriptor)),
            sys.stderr.encoding,
            "backslashreplace",
            line_buffering=True,
            write_through=True,
        )


class _Messages(io.RawIOBase):
    """Standard error that ignores failed writes (full disk, closed terminal), so that the command continues.

    One failure is raised and ends the command: `BrokenPipeError`, if the program that reads the messages has exited.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write all of `data`; errors other than a closed pipe are ignored."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BrokenPipeError:
            raise
        except OSError:
            pass
        return len(data)


def _drop_output() -> None:
    """Redirect unwritable output to /dev/null; otherwise the interpreter would complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
