"""The exception tree. Each class names the boundary that failed; each carries its exit code.

    HarnessError                 one sentence for the person at the keyboard
    ├── UsageError        (2)    an option, a configuration, a card, an input file
    ├── ServerError       (2)    the server is unreachable or refuses (401, unknown model, context too small)
    ├── StoreError        (3)    the run folder refused: identity, lock, damage, disk
    ├── StoppedByRule     (4)    a budget or a canary ended the run
    └── Interrupted   (128+n)    signal n ended the run

A failed request is data, not an exception of this tree: see `harness.client`. A run that ends with
samples owed exits with `EXIT_OWED`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from harness.core.secret import without_secrets
from harness.core.wording import UNSET, Sentence, option

EXIT_COMPLETE = 0
EXIT_OWED = 1
EXIT_UNJUDGED = 1
"""A benchmark's own verifier raised an exception on some answers."""


class HarnessError(Exception):
    """One clear sentence: what was found, where, what was expected, what to do.

    sentence: names options by `wording.option`; str() of the error is in Python's words.
    """

    exit_code = 2

    def __init__(self, sentence: str) -> None:
        self.sentence = Sentence(sentence)
        super().__init__(self.sentence)


class UsageError(HarnessError):
    """An option, a configuration, a card or an input file is wrong.

    field: the option that is refused, by its name in Python, and value: what was given; the sentence then begins with
    them.
    """

    def __init__(self, sentence: str, *, field: str | None = None, value: object = UNSET) -> None:
        if value is not UNSET and value is not None:
            value = without_secrets(value)
        super().__init__(sentence if field is None else f"{option(field, value)}: {sentence}")
        self.field = field
        self.value = None if value is UNSET else value


class ServerError(HarnessError):
    """The server is unreachable, or refuses in a way that no retry can help."""


class StoreError(HarnessError):
    """The run folder cannot be used: other identity, locked, damaged, disk full."""

    exit_code = 3


class InUse(StoreError):
    """Another process holds the run folder."""


class StoppedByRule(HarnessError):
    """A rule that the user set (or the canary) ended the run before it was complete."""

    exit_code = 4


class Interrupted(HarnessError):
    """A signal ended the run."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signum


def near_names(name: str, names: Iterable[str]) -> str:
    """` Did you mean a, b?` for a misspelt name, or an empty string."""
    folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    return f" Did you mean {', '.join(folded[n] for n in near)}?" if near else ""
