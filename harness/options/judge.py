"""The options of a judge."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from harness.core.errors import UsageError
from harness.core.options import Option, options_of
from harness.options.headings import JUDGE
from harness.options.whom import WhichServer

NO_KEY = ("base_url", "provider", "header")
"""Options of a judge that Python and files take; on the command line the address stands behind the model's name."""


class JudgeOptions(WhichServer, without=("serve",)):
    """The judge and the samples it sees. model: the judge. See `judges.judge.JudgeSettings` for the rest."""

    flag: ClassVar = "its address, --judge MODEL@URL"

    model: Annotated[str | None, Option(under=JUDGE)] = None
    """A model to decide what the rules leave undecided. Server: the one given, else OPENAI_BASE_URL, else the running
    one.
    """
    base_url: Annotated[tuple[str, ...], Option(under=JUDGE, metavar="URL")] = ()
    """The judge's server; repeat it for several. Default: OPENAI_BASE_URL, else the running server."""
    scope: Annotated[Literal["undecided", "wrong", "all"], Option(under=JUDGE)] = "undecided"
    """Samples the judge sees: undecided by the rules, also those called wrong, or all."""
    prompt: Annotated[str, Option(under=JUDGE, metavar="NAME|FILE")] = "verdict"
    """The judge's prompt: verdict, limo, another form, or a file with a form or rubric of your own. Default: the
    card's form, else verdict."""
    override: Annotated[bool, Option(under=JUDGE)] = False
    """Let the judge's verdict replace what the rules decided."""
    temperature: Annotated[float | None, Option(under=JUDGE, least=0)] = None
    """The judge's temperature. Default: 0."""
    max_tokens: Annotated[int | None, Option(under=JUDGE, least=1)] = None
    """Maximum new tokens of one reply. Default: 4096."""
    concurrency: Annotated[int | None, Option(under=JUDGE, least=1)] = None
    """Requests in flight. Default: what the server states."""

    def _check(self) -> None:
        """Raise `UsageError` if no model is named or the prompt cannot be used.

        Options are checked before a run, so the error comes before hours of sampling.
        """
        from harness.benchmarks.judge_forms import form_named

        super()._check()
        if not self.model:
            raise UsageError("give the name of the model that judges", field="model")
        form_named(self.prompt)


JUDGE_KEYS = tuple(name for name in options_of(JudgeOptions) if name not in ("model", *NO_KEY))
"""Options of a judge that stand behind its name on a command line."""
