"""Published names of models taken apart, so that two spellings of one model meet and two models do not.

Sources write one model as `Qwen/Qwen3-32B`, `qwen3-32b`, `Qwen3 32B (thinking)` or `Qwen3-32B-FP8`. A name is read into
six parts:

| part | of `Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 (high)` | where it is read from |
| --- | --- | --- |
| organisation | `qwen` | the word before the last slash |
| size | `30b-a3b` | `8b`, `a3b`, `8x7b`, `1.5b`, `270m` |
| release | `2507` | `2507`, `0528`, `2025-01-31`, `20250131` |
| precision | `fp8` | a word of `PRECISIONS`, or a form of GGUF such as `q4_k_m` |
| thinking | `high` | a word of `THINKING_WORDS`; of `EFFORTS` only where the name ends in it |
| base | `qwen3instruct` | all words that are no other part |

Two names are *one model* where all parts are equal; an organisation that only one of them states counts as equal. Two
names are *near* where base and size are equal and another part differs, or only one of them states it: a near name may
be another model (`Phi-4-mini` and `Phi-4-mini-reasoning`), so its scores are shown with the parts that differ, and
decide nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NAME_CHARS = 300
"""Longest name that is read whole, in characters; a longer one is cut first."""

PRECISIONS = frozenset(
    {"4bit", "8bit", "bf16", "fp16", "fp4", "fp8", "int4", "int8", "mxfp4", "nvfp4", "w4a16", "w8a16", "w8a8"}
) | frozenset({"awq", "bnb", "exl2", "gguf", "gptq", "mlx", "quantized"})
"""Words that name the precision of weights, or the format that implies one."""

THINKING_WORDS = frozenset(["thinking", "think", "reasoning", "nonthinking", "nonreasoning", "nothinking", "nothink"])
"""Words that say whether the model thinks before it answers."""

EFFORTS = frozenset(["minimal", "low", "medium", "high", "xhigh", "max"])
"""Words for how long the model thinks, at the end of a name; elsewhere they are part of it (`mistral-medium-3`)."""

_OF_A_PATH = ("/", ".", "~")
"""Beginnings of a path on this machine, whose folder is no organisation."""

_GGUF = re.compile(r"(?<![a-z0-9])i?q\d_(?:k(?:_[slm])?|[01]|xs|xxs|nl|s|m)(?![a-z0-9])")
_NEGATED = re.compile(r"(?<![a-z0-9])(?:non|no|without)[\s_-]+(thinking|think|reasoning)(?![a-z0-9])")
_DATE = re.compile(r"(?<![a-z0-9])(20\d\d)-?(0[1-9]|1[0-2])-?([0-3]\d)(?![a-z0-9])")
_RELEASE = re.compile(r"\d{4}")
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]|[ae]\d+(?:\.\d+)?b")
_BUDGET = re.compile(r"\d+k")
_SEPARATORS = re.compile(r"[\s_\-/()\[\]{},;:]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class NameParts:
    """The parts of a model's name, in lower case; empty where the name does not state the part."""

    organisation: str
    base: str
    size: str
    release: str
    precision: str
    thinking: str

    @property
    def key(self) -> str:
        """Base and size: equal for one model, and for names that are near."""
        return f"{self.base}:{self.size}"

    @classmethod
    def read(cls, name: str) -> NameParts:
        """The parts of `name`, of which at most `MAX_NAME_CHARS` are read."""
        text = name[:MAX_NAME_CHARS].casefold().rstrip("/").replace("+", "-plus-")  # Command-R+ is not Command-R
        owner, _, text = text.rpartition("/")
        parts: dict[str, list[str]] = {"size": [], "release": [], "precision": [], "thinking": []}

        def take(pattern: re.Pattern[str], part: str, form: str) -> None:
            """Move each match of the pattern from the text to a part, spelt by the template `form`."""
            nonlocal text
            parts[part] += [hit.expand(form) for hit in pattern.finditer(text)]
            text = pattern.sub(" ", text)

        # Taken before the name is split into words, since these parts hold separators themselves.
        take(_GGUF, "precision", r"\g<0>")
        take(_NEGATED, "thinking", r"non\1")
        take(_DATE, "release", r"\1-\2-\3")
        words = [word for word in _SEPARATORS.split(text) if word]
        if words and words[-1] in EFFORTS:
            parts["thinking"].append(words.pop())
        base: list[str] = []
        for word in words:
            if word in PRECISIONS:
                parts["precision"].append(word)
            elif word in THINKING_WORDS:
                parts["thinking"].append(_THINKING_SPELLING.get(word, word))
            elif _SIZE.fullmatch(word):
                parts["size"].append(word)
            elif _RELEASE.fullmatch(word):
                parts["release"].append(word)
            # 16k is a budget only beside a word for thinking; else it may be the length of the context.
            elif _BUDGET.fullmatch(word) and parts["thinking"]:
                parts["thinking"].append(word)
            else:
                base.append(word)
        return cls(
            organisation="" if name.startswith(_OF_A_PATH) else owner.rsplit("/", 1)[-1],
            base=_join(base),
            size="-".join(parts["size"]),
            release="-".join(parts["release"]),
            precision="-".join(sorted(parts["precision"])),
            thinking="-".join(dict.fromkeys(_THINKING_SPELLING.get(word, word) for word in parts["thinking"])),
        )


_THINKING_SPELLING = {
    "think": "thinking",
    "reasoning": "thinking",
    "nonthink": "nonthinking",
    "nonreasoning": "nonthinking",
    "nothink": "nonthinking",
    "nothinking": "nonthinking",
}


@dataclass(frozen=True, slots=True)
class NameMatch:
    """How one name relates to another. same: both are one model, as far as names tell.

    differing: the parts that are not equal, each as (name of the part, ours, theirs); "" for a part that a name leaves
    out.
    """

    same: bool
    differing: tuple[tuple[str, str, str], ...]

    @property
    def guess(self) -> str:
        """What was assumed, for a person; empty where the names are equal in all parts."""
        return "; ".join(
            f"{part}: {ours or 'not stated'} here, {theirs or 'not stated'} there"
            for part, ours, theirs in self.differing
        )


def match(ours: NameParts, theirs: NameParts) -> NameMatch | None:
    """How `theirs` relates to `ours`; None for another model."""
    if not ours.base or ours.key != theirs.key:
        return None
    parts = ("organisation", "release", "precision", "thinking")
    differing = tuple(
        (part, getattr(ours, part), getattr(theirs, part))
        for part in parts
        if getattr(ours, part) != getattr(theirs, part)
    )
    assumed = all(part == "organisation" and not (mine and their) for part, mine, their in differing)
    return NameMatch(same=assumed, differing=differing)


def _join(words: list[str]) -> str:
    """The words joined with nothing between them, but a dot between two numbers: `3`, `7` become `3.7`."""
    text = ""
    for word in words:
        ends_in_number = text != "" and text[-1].isdigit()
        text += f".{word}" if ends_in_number and word[0].isdigit() else word
    return text
