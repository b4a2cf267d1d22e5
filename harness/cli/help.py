"""How a command's help is laid out, and what a flag of another tool is called here.

A command with many options shows, for `--help`, those that people use first; `--help-all` shows all of them under
headings. `under` gives options their heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from harness.core.errors import near_names
from harness.core.inert import visible

F = TypeVar("F", bound=Callable[..., Any])

OTHER_HEADING = "Other options"


def under(heading: str, *options: Callable[[F], F]) -> tuple[Callable[[F], F], ...]:
    """The same options, shown under this heading."""
    return tuple(_marked(heading, option) for option in options)


def heading_of(parameter: click.Parameter) -> str:
    """The heading under which the help shows it."""
    return str(getattr(parameter, "heading", OTHER_HEADING))


def _marked(heading: str, option: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        function = option(function)
        function.__click_params__[-1].heading = heading  # type: ignore[attr-defined]
        return function

    return decorate


class Helping(click.Command):
    """A command whose help is short where it has many options, and that knows other tools' words.

    first: names of the parameters that the short help shows; none: the help shows all. verb: by which its options are
    declared (`harness.asking.options.verbs`).
    """

    def __init__(self, *args: Any, first: Sequence[str] = (), verb: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verb = verb
        self.first = first
        if first:
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_show_all,
                    help="Show all options, by subject.",
                )
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command.format_options`."""
        rows: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if not self.first:
                heading = "Options"
            elif ctx.meta.get(_ALL):
                heading = heading_of(parameter)
            elif parameter.name in (*self.first, "help_all", "help"):
                heading = "Options"
            else:
                hidden += 1
                continue
            rows.setdefault(heading, []).append(without_range(record))
        if OTHER_HEADING in rows:
            rows[OTHER_HEADING] = rows.pop(OTHER_HEADING)
        for heading, records in rows.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more options: {ctx.command_path} --help-all")
            formatter.write_paragraph()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if self.verb:
                from harness.cli.flag_words import refuse

                refuse(self.verb, error.option_name)
            raise click.UsageError(_no_such(error.option_name, self, ctx), ctx) from None


_ALL = "harness.cli.help.all"


def _show_all(ctx: click.Context, _parameter: click.Parameter, typed: bool) -> None:
    if typed and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def without_range(record: tuple[str, str]) -> tuple[str, str]:
    """A number's bounds are in the message of a refusal; in the help they are noise, as `INTEGER RANGE` is."""
    names, text = record
    bare, bracket, range_ = text.rpartition("  [")
    if bracket and ("<=" in range_ or ">=" in range_ or "<" in range_):
        remarks = "; ".join(part for part in range_.rstrip("]").split("; ") if "<" not in part and ">" not in part)
        text = f"{bare}  [{remarks}]" if remarks else bare
    elif not bracket and text.startswith("[") and ("<" in text or ">" in text):
        text = ""
    return names.replace(" RANGE", ""), text


def _no_such(name: str, command: click.Command, ctx: click.Context) -> str:
    flags = {
        flag: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    dashed = name.replace("_", "-")
    name = visible(name, 80)  # click would strip an escape, and show a flag that exists
    if dashed in flags:
        return f"No such option: {name}. That is {dashed} here."
    meant = ELSEWHERE.get(dashed.removeprefix("--").lower())
    if meant is not None:
        return f"No such option: {name}. {_meant(meant, command, ctx)}"
    return (
        f"No such option: {name}.{near_names(name, (parameter for parameter in flags if parameter.startswith('--')))}"
    )


def _meant(meant: str, command: click.Command, ctx: click.Context) -> str:
    if " " in meant:
        return meant
    for parameter in command.params:
        if parameter.name not in meant.split("/"):
            continue
        if isinstance(parameter, click.Argument):
            return f"That is {parameter.human_readable_name}, without a flag, here."
        return f"That is {parameter.opts[0]} here."
    return f"See `{ctx.command_path} --help`: this command has nothing like it."


def _spread(words: dict[str, str]) -> Iterator[tuple[str, str]]:
    for meant, others in words.items():
        for word in others.split():
            yield word, meant


ELSEWHERE: dict[str, str] = dict(
    _spread(
        {
            "samples": "num-tries repeats n-samples num-samples n-sampling num-repeats epochs n-generations "
            "n-repeat num-return-sequences",
            "concurrency": "parallel num-threads max-workers num-workers max-concurrency max-connections "
            "num-concurrent max-concurrent-requests num-proc eval-batch-size batch-size",
            "data": "data-path data-dir input-file input-path data-file dataset-path data-name question-file",
            "out": "output-path output-dir output-file save-dir log-dir result-dir output work-dir",
            "server_tp": "server-gpus tp-size tensor-parallel-size tensor-parallel",
            "server_dp": "dp-size data-parallel-size data-parallel",
            "server_pp": "pp-size pipeline-parallel-size",
            "server_memory_fraction": "gpu-memory-utilization mem-fraction-static mem-fraction",
            "server_context": "context-length max-context-length max-seq-len max-seq-length",
            "server_devices": "gpus gpu-ids cuda-visible-devices",
            "server_max_sequences": "max-num-seqs max-running-requests",
            "max_tokens": "tokens-to-generate max-new-tokens max-gen-toks max-completion-tokens max-output-tokens "
            "max-length max-tokens-per-call",
            "model": "model-name model-name-or-path model-path model-id model-args",
            "base_url": "url api-base api-url model-base-url host endpoint openai-api-base address",
            "provider": "model-provider backend-name",
            "api_key_env/judge_api_key_env": "api-key openai-api-key key",
            "benchmarks/benchmark": "task tasks benchmark dataset datasets data-set test-set",
            "limit": "num-questions num-examples num-samples-limit max-examples max-samples n-questions "
            "num-test-sample",
            "prompt": "prompt-type prompt-template template",
            "system_prompt": "system system-message system-instruction",
            "first_token_timeout": "timeout request-timeout read-timeout",
            "attempts": "max-retries retries num-retries",
            "rpm": "request-rate rate-limit max-rpm",
            "judge_model": "grader-model judge-model eval-model",
            "lengths_from": "length-estimates",
            "server": "server-name",
            "thinking": "reasoning-effort effort enable-thinking",
            "The port stands in the address: --base-url http://127.0.0.1:PORT": "port",
            "Questions are asked without examples; write them into a prompt of your own (docs/benchmarks.md).": (
                "num-fewshot fewshot n-shot num-shots few-shot"
            ),
            "Every sample is stored, always.": "log-samples save-outputs save-samples write-out",
            "The same command goes on by itself.": "resume continue use-cache rerun skip-existing continue-from-last",
            "Chat is the default; --api completions asks without a template.": "apply-chat-template use-chat-template",
        }
    )
)
"""Words of other tools, without their dashes, and what they mean here: a parameter (`a/b`: either) or a sentence."""
