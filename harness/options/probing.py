"""The options of a probe: the server, the base model's server, and which checks to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from harness.core.errors import UsageError
from harness.core.literals import ApiName
from harness.core.option_kinds import COMMAS
from harness.core.options import Option, Options
from harness.options.command import WHOM, CommandOptions, prints
from harness.options.server import HowWritten, WhichServer
from harness.presets.sampling import SERVER_FILLED, sampling_fields


class ProbeRules(Options):
    """Which checks a probe runs, and which replies it reads."""

    replies: Annotated[Path | None, Option(metavar="RUN")] = None
    """Only check whether the base model's replies in this run are as likely on this server as on the base model's
    server (vLLM and SGLang only).
    """
    reference: Annotated[str | None, Option(metavar="URL[#MODEL]|NAME")] = None
    """The base model's server, for `replies`. Required only once per run, because its values are stored in the run."""
    read_tokens: Annotated[int, Option(metavar="TOKENS", least=512, most=1_000_000)] = 50_000
    """Maximum number of tokens to read from `replies`, divided among its questions. Default: 50,000."""
    margin: Annotated[float, Option(metavar="NATS", above=0, most=10)] = 0.01
    """For `replies`: the smallest log-likelihood difference that matters, in nats per token. Default: 0.01."""
    checks: Annotated[tuple[str, ...], Option(metavar="NAME[,NAME...]", kind=COMMAS)] = ()
    """Names of the checks, or groups of checks, to run. Default: all."""
    api: Annotated[ApiName, Option()] = "chat"
    """API for the function call checks. All other checks use chat and completions."""
    context: Annotated[int | None, Option(metavar="TOKENS", least=1024)] = None
    """Maximum length to test, in tokens, including chat template and reply. Default: the reported context, up to 8,192
    tokens or 20 s of prefill.
    """
    timeout: Annotated[float, Option(metavar="SECONDS", above=0)] = 600.0
    """Maximum wait for a whole reply, or for the first token of a stream. Default: 600 s."""
    quick: Annotated[bool, Option()] = False
    """Run only the checks that need just a few short requests."""
    seed: Annotated[int | None, Option()] = None
    """Seed of the probe. To repeat an earlier probe, use its seed. Default: random."""

    def _check(self) -> None:
        """Raise `UsageError` if an option for `replies` is given without it, or if no quick check is left."""
        super()._check()
        if self.reference is not None and self.replies is None:
            raise UsageError("it requires `replies`: specify a run that was sampled on this server", field="reference")
        if self.replies is not None and self.quick:
            raise UsageError(
                "reading stored `replies` cannot be combined with quick checks: remove one of the two options",
                field="quick",
            )


NO_SERVER = ("serve", "concurrency")
"""Options of a run that a probe does not accept: it starts no server, and each check sets its own concurrency."""

DROPPABLE = (*SERVER_FILLED, "top_p", "stream_options", "seed", "random_seed")
"""Fields that a probe adds to requests whose check does not concern them; `drop` can keep these out."""


class ProbeOptions(WhichServer, ProbeRules, HowWritten, without=NO_SERVER):
    """The server that a probe examines, and the fields of all its requests, as for a run."""

    base_url: Annotated[tuple[str, ...], Option(under=WHOM, argument=True, metavar="[URL]")] = ()
    """The server. Default: OPENAI_BASE_URL, or the running server."""

    def _check(self) -> None:
        """Raise `UsageError` for a dropped field that is sent only by the checks about it."""
        super()._check()
        if odd := next((name for name in self.drop if name not in DROPPABLE), None):
            raise UsageError(
                f"expected one of {', '.join(DROPPABLE)}: a probe sends other fields only when it tests them",
                field="drop",
                value=odd if odd in (*sampling_fields(), "stream") else "…",  # any other text may be a key
            )


class ProbeCommand(ProbeOptions, CommandOptions):
    """Check the server at URL for problems with protocol, sampling, context, chat template and function calls.
    Each check prints what was sent, what came back, why it matters for a score, and how to fix it. With --replies,
    check whether a modified copy of a model is still equivalent to its base model.

    Exit code: 0 if no check found a problem that would invalidate a score, 1 if one did, 4 if no check ran, if
    --checks names one that could not run, or if --replies is inconclusive, and 2 if the server or
    the reference is unreachable or stopped responding.

    \b
    harness probe http://127.0.0.1:8000
    harness probe http://127.0.0.1:8000 --checks sampling --json
    harness probe http://copy:8000 --replies results/base --reference http://base:8000
    """

    first: ClassVar = (
        *("replies", "reference", "checks", "context", "timeout", "wait", "quick", "as_json", "quiet"),
        *("model", "provider", "api_key_env", "drop"),
    )

    as_json: Annotated[bool, prints("the report", "harness.probes.findings:ProbeReport")] = False
    quiet: Annotated[bool, Option()] = False
    """Do not show progress."""
