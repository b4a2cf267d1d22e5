"""The options of a probe: the server, what it should equal, and which checks are made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.asking.options.headings import WHOM
from harness.asking.options.whom import WhichServer
from harness.core.errors import UsageError, option
from harness.core.options import COMMAS, Option, Options


class ProbeRules(Options):
    """What a probe compares the server with, and which checks it makes."""

    reference: Annotated[
        str | None,
        Option(
            "What the server should equal: a server with the true weights, with #MODEL if it has several models; the "
            "model's folder (its template, and its weights by transformers), GGUF or Jinja file; a file of "
            f"{option('save_reference')}; a run's folder.",
            metavar="URL[#MODEL]|PATH",
        ),
    ] = None
    reference_api_key_env: Annotated[
        str | None,
        Option(
            f"Environment variable with the key of a server that {option('reference')} names. Default: its provider's "
            "(DEEPSEEK_API_KEY …); another server gets no key.",
            metavar="VARIABLE",
        ),
    ] = None
    reference_api_key_file: Annotated[
        Path | None,
        Option(f"File with the key of a server that {option('reference')} names, on one line.", secret=True),
    ] = None
    save_reference: Annotated[
        Path | None,
        Option(
            f"Write a file for later use with {option('reference')}: from the weights that {option('reference')} "
            "names, else from this server.",
            metavar="FILE",
        ),
    ] = None
    checks: Annotated[
        tuple[str, ...],
        Option("Only these checks, or groups of them. Default: all.", metavar="NAME[,NAME...]", kind=COMMAS),
    ] = ()
    context: Annotated[
        int | None,
        Option(
            "Length of the longest prompt to try, with template and reply. Default: the stated context, at most 16,384 "
            "tokens or what the server reads in 20 s.",
            metavar="TOKENS",
            least=1024,
        ),
    ] = None
    budget: Annotated[
        int | None,
        Option(
            "Tokens that the probe may cost: the checks that find most kinds of faults for them are made, others are "
            "untested. Default: all checks.",
            metavar="TOKENS",
            least=1,
        ),
    ] = None
    quick: Annotated[bool, Option("Only the checks that take a few short requests.")] = False
    seed: Annotated[
        int | None, Option("Seed of the probe's own draws; give it to repeat a probe. Default: a new one.")
    ] = None

    def _check(self) -> None:
        """Raise `UsageError` for a reference file that is a folder, and for a reference's key without a reference."""
        super()._check()
        for name in ("reference_api_key_env", "reference_api_key_file"):
            if self.reference is None and getattr(self, name) is not None:
                raise UsageError(f"it is the key of a server; name the server by {option('reference')}", field=name)
        if self.save_reference is not None and self.save_reference.is_dir():
            raise UsageError("it is a folder; expected a file", field="save_reference", value=self.save_reference)


class ProbeOptions(WhichServer, ProbeRules, without=("serve", "concurrency", "hash_weights")):
    """The server that a probe examines. A probe starts no server, and each check sets its own concurrency."""

    base_url: Annotated[
        tuple[str, ...],
        Option("The server. Default: OPENAI_BASE_URL, else the running server.", under=WHOM, argument=True),
    ] = ()
