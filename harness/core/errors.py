"""Messages for the user: the exception tree, and how a sentence names an option.

Each exception class names the boundary that failed and has its own exit code (`Exit`).

    HarnessError                 one sentence for the user
    ├── UsageError        (2)    an option, a configuration, a card, an input file
    ├── ServerError       (2)    the server is unreachable or refuses (401, unknown model, context too small)
    ├── StoreError        (3)    the run folder cannot be used: identity, lock, damage, disk
    ├── StoppedByRule     (4)    a budget or a canary ended the run
    ├── HelperFailed      (5)    a sandbox or a grader can no longer be started
    └── Interrupted   (128+n)    signal n ended the run

A failed request is data, not an exception of this tree: see `harness.client`. A run that ends while samples are missing
raises nothing, and the command exits with `Exit.CANNOT_SAY`.

A message names an option by its field's name, as Python writes it: `max_tokens`, `canary=False`. The command line
accepts both `--max_tokens` and `--max-tokens`.
"""

from __future__ import annotations

import enum
import json
import re
import signal
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from harness.core.secret import without_secrets

# ---- options in sentences


class _Unset:
    """The type of `UNSET`."""


UNSET: Final = _Unset()
"""Means "no value given": the message then shows only the option's name."""


def as_keyword(name: str, value: object) -> str:
    """An option as Python's callers write it: `samples`, or `samples=4` with a value."""
    if value is UNSET:
        return name
    plain = dict(value) if isinstance(value, Mapping) else value
    # A message must not fail because of a value that JSON does not have, such as a path.
    return f"{name}={json.loads(json.dumps(plain, default=str))!r}"


def as_yaml(sentence: str) -> str:
    """A sentence with the options that it sets written as keys of a YAML file: `canary=False` is `canary: false`."""
    words = {"True": "true", "False": "false"}
    return re.sub(r"`([a-z_]+)=([^`\n]+)`", lambda found: f"`{found[1]}: {words.get(found[2], found[2])}`", sentence)


# ---- exceptions


class Exit(enum.IntEnum):
    """Exit code of a command, the same for every command. A signal n ends a command with 128 + n.

    A crash of the interpreter ends with `NO`, too, so a pipeline that tolerates `CANNOT_SAY` never tolerates a crash.
    """

    YES = 0
    """Yes, or done: the answer is yes, or the command has done all of its work."""
    NO = 1
    """No: a gate fails, a run is worse by the margin, a score disagrees with the published ones, the server has a fault
    that distorts scores, a policy detects too few losses, or a check of the installation fails.
    """
    INVALID = 2
    """Not possible as specified: an option, a configuration or an input file is invalid, or the server is unreachable
    or rejects requests.
    """
    UNUSABLE = 3
    """The run folder cannot be used: it has different settings, is locked by another run or is damaged, or the disk is
    full.
    """
    CANNOT_SAY = 4
    """Cannot say, or not finished: a run lacks samples, a judge or verifier gave no verdict, no run is scored, the
    evidence is not enough to decide, or a budget, a target or the canary stopped the run. `score` grades the samples of
    an unfinished run and exits with 0.
    """
    NO_HELPER = 5
    """A sandbox or a grading process could not be restarted. Run the same command again to resume."""

    @classmethod
    def of(cls, answers: Iterable[Exit]) -> Exit:
        """The exit code of a command with several answers: one no is a no, and one open answer leaves it open."""
        found = set(answers)
        return next((code for code in (cls.NO, cls.CANNOT_SAY) if code in found), cls.YES)


class HarnessError(Exception):
    """Base class of all harness errors. The message says what was found and where, what was expected, and what to do.

    other_settings: if stored samples cannot be mixed with new samples, the settings that differ, one per line;
    otherwise empty.
    """

    exit_code: int = Exit.INVALID
    other_settings = ""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(self.sentence)

    def add(self, consequence: str) -> None:
        """Append a sentence about the error's consequences, which only the caller knows."""
        whole = self.sentence.rstrip(".")
        self.sentence = f"{whole}{'' if whole.endswith('?') else '.'} {consequence}"
        self.args = (self.sentence,)


class UsageError(HarnessError):
    """An option, a configuration, a card or an input file is invalid.

    field: Python name of the invalid option. value: the value that was given. If the error concerns a specific field,
    the message starts with `field=value: `. API keys in the value are hidden.
    """

    def __init__(self, sentence: str, *, field: str | None = None, value: object = UNSET) -> None:
        if value is not UNSET and value is not None:
            value = without_secrets(value)
        super().__init__(sentence if field is None else f"{as_keyword(field, value)}: {sentence}")
        self.field = field
        self.value = None if value is UNSET else value


Hope = Literal["starting", "passing", "slow", "elsewhere"]
"""Why a server may still answer: it says that it is starting, or an address of this machine refuses connections; the
error may pass; the server was reached but did not answer in time; or nothing answers at an address of another machine.
"""


class ServerError(HarnessError):
    """The server is unreachable, or rejects requests.

    cause: the sentence without what to do. advice: what to do if waiting does not help. hope: why the server may still
    answer; None if a retry cannot succeed, as with an invalid key.
    """

    def __init__(self, cause: str, *, advice: str = "", hope: Hope | None = None) -> None:
        super().__init__(f"{cause}; {advice}" if advice else cause)
        self.cause = cause
        self.hope = hope


class StoreError(HarnessError):
    """The run folder cannot be used: it belongs to another run, is locked or damaged, or the disk is full."""

    exit_code = Exit.UNUSABLE


class OtherModel(StoreError):
    """A server runs a different model from the one that made the run's samples.

    difference: the evidence, ending with the space or line break that separates it from the sentence added here.
    """

    def __init__(self, difference: str) -> None:
        super().__init__(
            f"{difference}Use the original server or another run folder. "
            f"To mix samples from both and record this, set `accept_server_change`."
        )
        self.difference = difference.strip()


class NotWritable(StoreError):
    """The file is not writable, for this user or for anyone."""


class InUse(StoreError):
    """Another process holds the run folder's lock."""


class StoppedByRule(HarnessError):
    """A rule stopped the run before it was complete: a budget set by the user, or the canary."""

    exit_code = Exit.CANNOT_SAY


class HelperFailed(HarnessError):
    """A process that the harness needs could not be started, even after several attempts. Stored results are kept. Run
    the same command again to resume.
    """

    exit_code = Exit.NO_HELPER


class Interrupted(HarnessError):
    """A signal (Ctrl-C, SIGTERM) ended the run. signum: the signal's number."""

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signum


class Signalled(KeyboardInterrupt):
    """Raised by the signal `signum` in whatever code is running at that moment.

    Only a KeyboardInterrupt passes through all code: asyncio handles any other exception, and `threading.Thread.start`
    takes an `Exception` for a failure to start, after which the thread ends with a KeyError.
    """

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.signum = signum


def stop_signal(stop: BaseException) -> signal.Signals:
    """The signal that raised `stop`; SIGINT for a plain `KeyboardInterrupt`."""
    return signal.Signals(getattr(stop, "signum", signal.SIGINT))


MAX_NEAR = 3
"""Largest number of names that a message suggests."""


def near_names(name: str, names: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The end of a message about an unknown name of a thing, such as a model: ` Did you mean a, b?`, or empty.

    The near names are the similar ones or, if there are none, those that contain all letters and digits of the typed
    name in a row. aliases: alias → the name to show in its place.
    """
    shown = {candidate: candidate for candidate in sorted(names)} | dict(aliases or {})
    folded = {candidate.casefold(): named for candidate, named in shown.items()}
    import difflib  # takes milliseconds, and names are rarely misspelled

    min_ratio = MIN_RATIO if len(name) > SHORT else MIN_RATIO_OF_SHORT
    likely = [folded[near] for near in difflib.get_close_matches(name.casefold(), folded, cutoff=min_ratio)]
    if not likely and len(letters := _letters(name)) >= MIN_HELD_LETTERS:
        likely = [named for candidate, named in folded.items() if letters in _letters(candidate)]
    return _did_you_mean(likely)


MIN_RATIO = 0.75
"""Minimum similarity of a near name. A less similar one is often another thing (restart, preset; aime2024, aime25)."""
SHORT = 3
MIN_RATIO_OF_SHORT = 0.6
"""Minimum similarity if the name has at most `SHORT` characters, since one typo changes much of it."""
MIN_HELD_LETTERS = 3
"""Fewer letters than this occur in too many names."""


def misspelled(word: str, words: Iterable[str]) -> str:
    """The end of a message about an unknown word of a fixed vocabulary, such as an option: ` Did you mean a, b?`.

    Only a typo counts: a missing or extra character, two swapped characters, or a wrong one in a word of at least
    `MIN_SUBSTITUTED` characters. Words that merely look similar often mean something else: the result is then empty.
    """
    return _did_you_mean([known for known in sorted(words) if _is_slip(_dashes(word), _dashes(known))])


MIN_SUBSTITUTED = 6
"""In shorter words, one changed character often makes another word: stop, step; host, port."""


def _is_slip(typed: str, word: str) -> bool:
    """Whether the words differ by at most one typo. Two characters are too few to tell."""
    if min(len(typed), len(word)) < 2 or len(typed) + len(word) < 5:
        return False
    if abs(len(typed) - len(word)) == 1:
        longer, shorter = sorted((typed, word), key=len, reverse=True)
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    if len(typed) != len(word):
        return False
    differing = [i for i, (one, other) in enumerate(zip(typed, word, strict=True)) if one != other]
    if len(differing) == 2:
        i, j = differing
        return j == i + 1 and typed[i] == word[j] and typed[j] == word[i]
    return not differing or (len(differing) == 1 and len(word) >= MIN_SUBSTITUTED)


def _dashes(word: str) -> str:
    """The word in one case, with dashes for underscores."""
    return word.lstrip("-").replace("_", "-").casefold()


def _letters(name: str) -> str:
    """The letters and digits of a name."""
    return "".join(filter(str.isalnum, name.casefold()))


def _did_you_mean(names: Iterable[str]) -> str:
    """The end of a message that suggests the first of these names; empty if there are none."""
    listed = ", ".join([*dict.fromkeys(names)][:MAX_NEAR])
    return f" Did you mean {listed}?" if listed else ""
