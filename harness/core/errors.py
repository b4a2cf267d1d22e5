"""The exception tree. Each class names the boundary that failed; each carries its exit code.

    HarnessError                 one sentence for the person at the keyboard
    ├── UsageError        (2)    an option, a configuration, a card, an input file
    ├── ServerError       (2)    the server is unreachable or refuses (401, unknown model, context too small)
    ├── StoreError        (3)    the run folder refused: identity, lock, damage, disk
    ├── StoppedByRule     (4)    a budget or a canary ended the run
    └── Interrupted   (128+n)    signal n ended the run

A failed request is data, not an exception of this tree: see `harness.client`. A run that ends while samples are missing
raises nothing, and the command exits with `EXIT_OWED`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from harness.core.secret import without_secrets
from harness.core.wording import UNSET, Sentence, option

EXIT_COMPLETE = 0
"""Exit code of a command that did all of its work."""

EXIT_OWED = 1
"""Exit code of a run that ended while samples are missing; the same command goes on with them."""

EXIT_UNJUDGED = 1
"""Exit code of a score in which a benchmark's own verifier raised an exception on some answers."""


class HarnessError(Exception):
    """Base of all errors of the harness. Its text is a sentence: what was found, where, what was expected, what to do.

    sentence: the text with options marked by `wording.option`, so that the command line can print them as flags. str()
    of the error shows them as Python keywords.
    """

    exit_code = 2

    def __init__(self, sentence: str) -> None:
        self.sentence = Sentence(sentence)
        super().__init__(self.sentence)


class UsageError(HarnessError):
    """An option, a configuration, a card or an input file is wrong.

    field: the refused option's name in Python. value: the value that was given for it. With a field, the sentence
    begins with both, `field=value: `; keys in the value are hidden.
    """

    def __init__(self, sentence: str, *, field: str | None = None, value: object = UNSET) -> None:
        if value is not UNSET and value is not None:
            value = without_secrets(value)
        super().__init__(sentence if field is None else f"{option(field, value)}: {sentence}")
        self.field = field
        self.value = None if value is UNSET else value


class ServerError(HarnessError):
    """The server is unreachable, or refuses so that a retry cannot help: a wrong key, an unknown model."""


class StoreError(HarnessError):
    """The run folder cannot be used: it belongs to another run, is locked or damaged, or the disk is full."""

    exit_code = 3


class InUse(StoreError):
    """Another process holds the run folder's lock."""


class StoppedByRule(HarnessError):
    """A rule ended the run before it was complete: a budget that the user set, or the canary."""

    exit_code = 4


class Interrupted(HarnessError):
    """A signal (Ctrl-C, SIGTERM) ended the run. signum: the signal's number."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signum


def near_names(name: str, names: Iterable[str]) -> str:
    """The end of a message about a misspelt name: ` Did you mean a, b?`, or empty if no name is near."""
    folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    return f" Did you mean {', '.join(folded[n] for n in near)}?" if near else ""
