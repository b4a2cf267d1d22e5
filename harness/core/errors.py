"""Messages for the person at the keyboard: the exception tree, and how a sentence names an option.

Each exception class names the boundary that failed; each carries its exit code.

    HarnessError                 one sentence for the person at the keyboard
    ├── UsageError        (2)    an option, a configuration, a card, an input file
    ├── ServerError       (2)    the server is unreachable or refuses (401, unknown model, context too small)
    ├── StoreError        (3)    the run folder refused: identity, lock, damage, disk
    ├── StoppedByRule     (4)    a budget or a canary ended the run
    └── Interrupted   (128+n)    signal n ended the run

A failed request is data, not an exception of this tree: see `harness.client`. A run that ends while samples are missing
raises nothing, and the command exits with `EXIT_OWED`.

Code below the command line and the Python functions writes `option("max_tokens")` in a message, never a flag: a mark
with the option's name and perhaps its value. `Sentence` shows a mark as Python's callers write the option
(`max_tokens`, `canary=False`); `harness.cli` shows it as the flag of the command that was typed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from harness.core.secret import without_secrets

# ---- options in sentences

_OPEN, _VALUE, _CLOSE = "\x0e", "\x1f", "\x0f"
"""Control characters that begin a mark, separate name and value, and end it. Foreign text cannot forge a mark: its
control characters are escaped (`harness.core.inert`) before it enters a message."""

_MARK = re.compile(f"{_OPEN}([a-z0-9_.]+)(?:{_VALUE}([^{_OPEN}{_CLOSE}]*))?{_CLOSE}")


class _Unset:
    """The type of `UNSET`."""


UNSET: Final = _Unset()
"""Stands for "no value given": the message then shows the option's name only."""

Spell = Callable[[str, Any], str]
"""A function of (an option's name, its value or `UNSET`) that returns how the command line or Python spells both."""


def option(name: str, value: object = UNSET) -> str:
    """The mark that stands for an option in a message.

    name: the option's name in Python; `server.port` is the field `port` of a server's spec. value: what was given.
    """
    if value is UNSET:
        return f"{_OPEN}{name}{_CLOSE}"
    plain = dict(value) if isinstance(value, Mapping) else value
    # A message must not fail over a value that JSON lacks, such as a path.
    return f"{_OPEN}{name}{_VALUE}{json.dumps(plain, default=str)}{_CLOSE}"


def spell_options(marked: str, spell: Spell) -> str:
    """`marked` with each mark replaced by what `spell` returns for it."""
    return _MARK.sub(lambda m: spell(m[1], UNSET if m[2] is None else json.loads(m[2])), marked)


def as_keyword(name: str, value: object) -> str:
    """An option as Python's callers write it: `samples`, or `samples=4` with a value."""
    word = name.rpartition(".")[2]
    return word if value is UNSET else f"{word}={value!r}"


class Sentence(str):
    """A finished message. As a text it names options as Python does; `marked` has the marks, for the command line."""

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, marked: str) -> Sentence:
        """marked: a text with marks, or a finished sentence, which is copied."""
        marked = marked.marked if isinstance(marked, Sentence) else marked
        sentence = super().__new__(cls, spell_options(marked, as_keyword))
        sentence.marked = marked
        return sentence

    def of(self, scope: str) -> Sentence:
        """The sentence with its options as those of another server than the run's.

        scope: "judge" makes `base_url` the judge's, which the command line spells as its flag for the judge's address.
        An option that has a scope already, such as `server.port`, keeps it.
        """

        def scoped(name: str, value: object) -> str:
            return option(name if "." in name else f"{scope}.{name}", value)

        return Sentence(spell_options(self.marked, scoped))


# ---- exceptions

EXIT_COMPLETE = 0
"""Exit code of a command that did all of its work."""

EXIT_OWED = 1
"""Exit code of a run that ended while samples are missing; the same command goes on with them."""

EXIT_UNJUDGED = 1
"""Exit code of a score in which a benchmark's own verifier raised on some answers, or returned neither right nor wrong;
or to which a judge was asked and gave no verdict at all.
"""


class HarnessError(Exception):
    """Base of all errors of the harness. Its text is a sentence: what was found, where, what was expected, what to do.

    sentence: the text with options marked by `option`, so that the command line can print them as flags. str()
    of the error shows them as Python keywords. other_settings: the settings with which stored samples were made
    otherwise, a line each, if the error refuses to mix them with new ones; else empty.
    """

    exit_code = 2
    other_settings = ""

    def __init__(self, sentence: str) -> None:
        self.sentence = Sentence(sentence)
        super().__init__(self.sentence)

    def add(self, consequence: str, before: str = "") -> None:
        """Add a sentence on what the error leaves behind, where only a caller knows it.

        before: an end of the text that stays last, such as a command to be copied.
        """
        text = self.sentence.marked
        last = before if text.endswith(before) else ""
        whole = text.removesuffix(last).rstrip(".")
        added = f"{whole}{'' if whole.endswith('?') else '.'} {consequence}"
        self.sentence = Sentence(f"{added}.{last}" if last else added)
        self.args = (self.sentence,)


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


class OtherModel(StoreError):
    """A server runs another model than the one that made the run's samples. difference: what shows it."""

    def __init__(self, difference: str) -> None:
        super().__init__(
            f"{difference}Ask the former server, or use another run folder; "
            f"{option('accept_server_change', True)} mixes them all the same and records it."
        )
        self.difference = difference.strip()


class NotWritable(StoreError):
    """This user, or nobody, may write the file."""


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


MAX_NEAR = 3
"""Largest number of names that a message suggests."""


def near_names(name: str, names: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The end of a message about a misspelt name: ` Did you mean a, b?`, or empty if no name is near.

    aliases: alias → the name that is shown in its place.
    """
    shown = {candidate: candidate for candidate in sorted(names)} | dict(aliases or {})
    folded = {candidate.casefold(): named for candidate, named in shown.items()}
    # More than are shown, since several may be aliases of one name.
    import difflib  # takes milliseconds, and no misspelt name is the rule

    near = difflib.get_close_matches(name.casefold(), folded, n=4 * MAX_NEAR, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, candidate, name.casefold()).ratio() for candidate in near]
    # A name that is much less alike than the nearest one is not what was meant.
    likely = [folded[candidate] for candidate, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - 0.1]
    return f" Did you mean {', '.join([*dict.fromkeys(likely)][:MAX_NEAR])}?" if likely else ""
