"""The options of a judge."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from harness.core.errors import UsageError
from harness.core.options import Option, options_of
from harness.options.command import JUDGE
from harness.options.server import WhichServer

NO_KEY = ("base_url", "provider", "header")
"""Options of a judge for Python and files; on the command line, the address follows the model's name."""


OF_SERVER = (*NO_KEY, "api_key_env")
"""Options that apply only to the judge's server."""


class JudgeOptions(WhichServer, without=("serve",)):
    """The judge model, its server, and the samples that it grades."""

    flag: ClassVar = "--judge MODEL@URL"
    wait_flag: ClassVar = "--judge MODEL@URL,wait=SECONDS"

    model: Annotated[str | None, Option(under=JUDGE)] = None
    """Model that grades answers left open by the rules: undecided, or without an answer that they find."""
    base_url: Annotated[tuple[str, ...], Option(under=JUDGE, metavar="URL")] = ()
    """URL of the judge's server. Repeatable. Default: OPENAI_BASE_URL, or the running server."""
    scope: Annotated[Literal["open", "undecided", "wrong", "all"], Option(under=JUDGE)] = "open"
    """Samples that the judge grades: those left open by the rules (undecided or without an answer), undecided ones
    only, open and wrong ones, or all.
    """
    prompt: Annotated[str, Option(under=JUDGE, metavar="NAME|FILE")] = "verdict"
    """The judge's prompt: verdict, limo or another named form, or a file with your own form or rubric. Default: the
    card's form, otherwise verdict.
    """
    override: Annotated[bool, Option(under=JUDGE)] = False
    """Let the judge's verdict replace the rules' verdict."""
    temperature: Annotated[float | None, Option(under=JUDGE, least=0)] = None
    """The judge's temperature. Default: 0."""
    max_tokens: Annotated[int | None, Option(under=JUDGE, least=1)] = None
    """Maximum new tokens per reply. Default: 4096."""
    concurrency: Annotated[int | None, Option(under=JUDGE, least=1)] = None
    """Maximum number of requests in flight. Default: the server's limit."""
    jury: Annotated[tuple[str, ...], Option(under=JUDGE, metavar="MODEL@URL")] = ()
    """Additional judge for each answer. Without @URL, it uses the first judge's server. Repeatable."""

    def _check(self) -> None:
        """Raise `UsageError` if no model is named or the prompt cannot be used.

        Options are checked before a run, so the error is raised before hours of sampling.
        """
        from harness.benchmarks.judge_forms import form_named

        super()._check()
        if not self.model:
            raise UsageError("specify the judge model", field="model")
        form_named(self.prompt)
        names = [self.model, *(juror.model for juror in self.jurors)]
        if len(set(names)) < len(names):
            raise UsageError("the judges in a jury must be different models", field="jury")

    @property
    def jurors(self) -> list[JudgeOptions]:
        """The additional judges. Each of them uses these options. If a judge specifies its own server, that server is
        used, and the API key is not sent to it.
        """
        jurors = []
        for name in self.jury:
            at = ADDRESSED.fullmatch(name)
            others = {"jury", *(OF_SERVER if at else ())}
            own = {key: value for key, value in self.explicit.items() if key not in others}
            jurors.append(JudgeOptions.of(**own | ({"model": at[1], "base_url": (at[2],)} if at else {"model": name})))
        return jurors


ADDRESSED = re.compile(r"(.+?)@((?:https?|unix):.+)")
"""A model and its server, MODEL@URL."""

JUDGE_KEYS = tuple(name for name in options_of(JudgeOptions) if name not in ("model", *NO_KEY))
"""Options of a judge that follow its name on a command line."""
