r"""What stands directly beside a box and belongs to its value: `\boxed{12}` cm is 12 cm, `x=-\boxed{12}` is -12.

What may stand beside a box without changing its value is a closed list: the ends of the formula, relations, marks of
punctuation, spaces, styles, words. A unit, also in brackets or behind the word "unit" (180（升）, 180，单位：升), a
counted noun, a percent sign, a degree sign and a minus sign are taken into the answer. Anything else in the same
formula (a factor, a power, an operator, a fraction around the box) makes the box a part of a larger expression, whose
value the response does not state; so the answer is undecided. The answer is undecided, too, if the number goes on:
12元五角, 12元的一半.

Positions are characters of the text. Only `BEFORE_CHARS` before and `BEHIND_CHARS` behind the box are read.
"""

from __future__ import annotations

import re

from harness.answers.boxed import Box
from harness.answers.grammar.characters import plain_latex
from harness.answers.grammar.units import FUNCTION_WORDS, is_counted, split_scale, unit_of, with_per

BEFORE_CHARS, BEHIND_CHARS = 2000, 200
"""Longest text before and behind a box that is read."""

_DELIMITER = re.compile(r"\\\\|\\[()\[\]$]|\$\$?")
_CLOSING = {"$": r"(?<!\\)\$", "$$": r"\$\$", "\\(": r"\\\)", "\\[": r"\\\]"}
"""Delimiter that opens a formula → pattern of the delimiter that closes it."""

NUMBER = re.compile(
    r"(?:[\s\d.,{}()^+\-−*/×·√π]|\\(?:[dt]?frac|sqrt|pi|cdot|times|left|right)(?![A-Za-z])|\\[,;! ]"
    r"|(?<=\d)[eE](?=[-+\d]))+"
)
"""The content of a box that a unit may follow: a number without letters, or a fraction, root or multiple of π."""

_RELATIONS = (
    r"(?:[=≈≃≡<>≤≥→⇒⟹∴:：,，;；&]|\\(?:approx|equiv|simeq|sim|cong|doteq|triangleq|to|mapsto|longmapsto|implies|iff"
    r"|(?:[Ll]ong)?[Rr]ightarrow|(?:[Ll]ong)?[Ll]eftrightarrow|therefore|because|leq?|geq?|leqslant|geqslant|lt|gt"
    r"|in|colon|newline)(?![A-Za-z])|\\\\(?:\[[^\]\n]{0,20}\])?)"
)
_COMMANDED_SPACES = r"\\[,;:! ]|\\q?quad(?![A-Za-z])"
_SPACES = (
    rf"(?:\s|~|\{{\s*\}}|{_COMMANDED_SPACES}"
    r"|\\(?:displaystyle|textstyle|[Ll]arge|LARGE|[Hh]uge|bf|rm)(?![A-Za-z]))"
)
_WORDS = r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|operatorname)\s*\{[^{}]{0,200}\}"
_STYLE = (
    r"(?:\\(?:boxed|fbox|framebox|mathbf|boldsymbol|bm|textbf|textit|text|mathrm|mbox|underline|overline|uline|displaystyle|large)\s*"
    r"|\\(?:color|textcolor)\s*\{[\w!#]{1,30}\}\s*)"
)
_STYLES = rf"{_STYLE}?\{{"
_OPENS_BEFORE = re.compile(
    rf"(?:\A|{_RELATIONS}|{_WORDS}|\\begin\s*\{{[a-z]+\*?\}}(?:\{{[^{{}}]{{0,20}}\}})?|\\item(?![A-Za-z])"
    rf"|\\color\s*\{{[\w!#]{{1,30}}\}}|[\u3400-\u9fff])"
    rf"(?:{_SPACES}|{_STYLES})*(?P<sign>[-−+]?){_SPACES}*(?P<money>\\[$]|[€£¥￥＄])?(?:{_SPACES}|{_STYLES})*\Z"
)
r"""The end of what stands before a box in its formula: its beginning, a relation or words; then perhaps a sign and a
currency. Behind any other text, the box is a part of a larger expression.
"""

_SIGN_IN_TEXT = re.compile(r"(?:[=≈≡]\s*(?P<sign>[-−]))?\s*(?P<money>\\[$]|[€£¥￥＄])?\s*\Z")
_FACTOR_IN_TEXT = re.compile(
    r"(?:(?<![A-Za-z\\])[A-Za-z]|[\d^/+]|(?<![=≈≡])(?<![=≈≡]\s)[-−]|\\[A-Za-z]+\s*(?:\{[^{}]*\}\s*)?\{)\Z"
)
_STYLE_IN_TEXT = re.compile(rf"{_STYLE}\{{\Z")

_BARE_CHARS = 12
_BARE_BEFORE = re.compile(r"(?:(?<!\\)\$|\\\(|\\\[|=)[ \n]?\Z")
_BARE_BEHIND = re.compile(r"\s?(?:\$\$?|\\\)|\\\])(?:[.。]?(?:\s*\Z|\n)|[.。]\s)")
"""The text behind a box if both its formula and its sentence end there."""

_PERCENT = re.compile(r"\\?%|(?i:percent)\b")
_DEGREES = re.compile(
    r"(?:\^\s*\{?\s*\\circ\s*\}?|\\(?:degree|deg)(?![A-Za-z])|°)(?:\s|~)*"
    r"(?:(?:\\(?:text|mathrm)\s*\{)?\s*(?P<scale>[CFK])(?![A-Za-z]))?"
)
_SCALES = {
    "C": "\\text{ degrees Celsius }",
    "F": "\\text{ degrees Fahrenheit }",
    "K": "\\text{ kelvin }",
    None: "^\\circ",
}
_FACTOR_OF_UNIT = (
    r"(?:\\(?:text|mathrm|mbox|textrm|operatorname|mathit|mathsf|rm)\s*\{[^{}]{0,60}\}"
    r"|\{\s*(?:\\rm\s)?[A-Za-z ~]{1,20}\}|[A-Za-zµμΩ]{1,12}|\\(?:mu|Omega)(?![A-Za-z]))(?:\s*\^\s*\{?\s*-?\d\s*\}?)?"
)
_UNIT = re.compile(rf"(?:/\s*)?{_FACTOR_OF_UNIT}(?:(?:{_SPACES}|/|\\cdot(?![A-Za-z])|·)*{_FACTOR_OF_UNIT}){{0,4}}")
"""A text that may be a unit in a formula: names in upright type or bare letters, with exponents, products, slashes."""

_MICRO = re.compile(r"\\mu\s*(?:\\(?:mathrm|text)\s*\{\s*~?)?")
_COMMAND_OF_GROUP = re.compile(r"\\(?:text|mathrm|mbox|textrm|operatorname|mathit|mathsf|rm)(?![A-Za-z])")
_PASSED_BEHIND = re.compile(
    rf"\Z|{_RELATIONS}|{_WORDS}|[.?？。!！](?=[\s}}]|\Z)|/\s*\Z|\\AA(?![A-Za-z])|\^\s*\{{?\s*(?:\\prime|['′″])|\[|\}}|\||\(\s*(?:{_WORDS}|[A-Za-z]{{3}}|[\u3400-\u9fff])|[\u3400-\u9fff]"
    r"|\\(?:pmod|bmod|mod|pm|tag|blacksquare|square|Box|qed|checkmark|end|label|nonumber|hline|vphantom)(?![A-Za-z])"
    r"|\\right\b|[A-Za-z]{3,}"
)
r"""Everything that may stand behind a box in its formula: its end, a relation, words, punctuation, `\pmod{7}`."""

_PART_IN_TEXT = re.compile(
    r"[\^‰‱¹²³⁰-⁹]|[+/×÷]\s?[\w\\(]|\*(?!\*)\s?[\d(\\]|-\d|\d|[A-Za-z](?![A-Za-z])|\((?=\s*[-\d])"
)
_COMPUTES = re.compile(
    r"(?i)\s*(?:squared|cubed|factorial|plus|minus|divided\s+by|multiplied\s+by|times\s+(?=[\d$\\])|to\s+the\s+power)\b"
)
_DENIED_OR_TURNED = re.compile(r"(?i)\b(?:minus|negative|not|isn['’]t)\s+[$\\(\[]*\Z")
_OPERATION_BEFORE = re.compile(
    r"(?:[÷×]|\\(?:div|times|cdot|sin|cos|tan|ln|log|exp)(?![A-Za-z])|\\sqrt\s*(?:\[[^\]]{0,9}\])?"
    r"|(?<=[\d)}])\s*[+*](?=\s))[\s{]*(?:\$\$?|\\[(\[])?\s*\Z"
)
r"""An operation directly before a box or its formula: `1÷\boxed{3/4}`. A lone - or * at the beginning opens an item."""

_ALTERNATIVE = re.compile(r"\s*(?:or|或者?)\s+[$\\(\s]*([-−]?\d[\d.,/]*\d|\d)")
"""A second value: "12 or 13"."""

_BRACKET = re.compile(r"[(\[（]\s*(?:in\s+)?([^()\[\]（）]{1,60})[)\]）]")
_AROUND_UNIT = " ()（）"
_UNIT_LABEL = re.compile(r"(?:单位|(?i:(?:the\s+)?units?\b))\s*(?:(?:[:：是为]|\b(?:is|are)\b)\s*)*")
"""The words that announce a unit: 单位：, "the unit is"."""

_BEFORE_LABEL = re.compile(r"[\s,，.。;；*_`(（]*(?:(?:注意?|(?i:note(?:\s+that)?))\s*[:：,，]?\s*)?")
_CHINESE = re.compile(r"[\u4e00-\u9fff]{1,12}")
_CHINESE_PER = re.compile(r"/[\u4e00-\u9fff]{1,6}")
_CHINESE_UNIT = re.compile(
    rf"(?:[ \t*_`$]|\\[)\]])*(?:{_BEFORE_LABEL.pattern}{_UNIT_LABEL.pattern}|[(（]\s*)?"
    rf"(?P<unit>{_CHINESE.pattern}(?:{_CHINESE_PER.pattern})?)\s*[)）]?"
)
_MORE = re.compile(
    r"[多半几余]|左右|上下|以[上下内外]|(?:\d|[零一二两三四五六七八九十百千万](?![共起样定般直些切]))"
    r"|的(?:一半|[\d零一二两三四五六七八九十百千万]{1,9}(?:倍|分之|成|%|/))"
)
"""Words by which a number goes on behind its unit: more than it, a bound, a further part, a multiple."""

_POWER = re.compile(r"(?<=[A-Za-z}])(?:\$\s*\^\s*\{?\s*(?P<raised>[23])\s*\}?\s*\$|(?P<sign>[²³]))")
r"""A power behind a unit, in a formula of its own or as one character: `cm$^2$`, `cm²`."""

_RAISED_UNIT = re.compile(
    rf"(?:{_SPACES}|[$*_]|\\[)\]])*(?P<unit>\\(?:text|mathrm|mbox|textrm|rm)\s*\{{[^{{}}]{{0,60}}\}}|[A-Za-z]{{1,12}})"
    rf"(?:{_POWER.pattern}|\s*\^\s*\{{?\s*\d\s*\}}?)"
)
_AND_FURTHER = re.compile(
    r"(?P<unit>[A-Za-z]+),?\s+and\s+(?:(?:an?|one)\s+)?(?:half\b|[\w.$-]+[$\s]+(?P<smaller>[A-Za-z]+))"
)
"""A unit and a further part of its quantity: dollars and fifty cents, hours and a half."""

_TIME_OF_DAY = re.compile(r"(?i)[ap]\.?\s?m\b")
_UNIT_OF_ONE_SIGN = re.compile("[\u3371-\u33df℃℉]")
"""Characters that are a whole unit, such as ㎡."""
_LATIN_WORDS = re.compile(r"[A-Za-zµμΩ°¢][A-Za-zµμΩ°/^·²³0-9-]*(?: [A-Za-z][A-Za-z/^·²³0-9-]*){0,4}")
_ENDS = re.compile(r"\s*(?:\Z|[.,;:!?…)\]*_|。，；！？）]|\\\\|\n|\\[\])]|\$|<)")
_NEXT_WORD = re.compile(r"\s+([A-Za-z]+)\b")
_AMBIGUOUS = frozenset(("in", "am", "a", "as", "us"))
"""Names of units that are words, too: they are units only alone and at the end of a statement."""

_LINKS = FUNCTION_WORDS - {"per"}
"""Words that may follow a unit: "12 cm of rope"; "per" goes on with the unit."""


def beside_box(text: str, box: Box, lo: int, hi: int, word: str = "") -> str | None:
    """Return the value of a box of text[lo:hi] together with what belongs to it, such as a unit.

    word: the word in Chinese behind the box that belongs to its value, as `find.box_clause` reads it; "" without one.
    None if the box is only a part of a larger expression, in or outside of a formula, or if the word before it denies
    or negates it ("not", "minus").
    """
    near = max(lo, box.outer_start - 20)
    if any(words.search(text, near, box.outer_start) for words in (_DENIED_OR_TURNED, _OPERATION_BEFORE)):
        return None
    behind = text[box.outer_end : min(hi, box.outer_end + BEHIND_CHARS)]
    if (
        _BARE_BEFORE.search(text, max(lo, box.outer_start - 4), box.outer_start)
        and _BARE_BEHIND.match(text, box.outer_end, min(hi, box.outer_end + _BARE_CHARS))
        and not _may_label_unit(behind)
    ):
        return box.content  # most boxes are of this kind
    opening = formula_around(text, box.outer_start, lo)
    value = box.content
    if opening is None:
        line = text[max(lo, box.outer_start - BEFORE_CHARS) : box.outer_start].rpartition("\n")[2]
        factor = _FACTOR_IN_TEXT.search(line)
        if factor is not None and _STYLE_IN_TEXT.search(line) is None:
            return None
        sign = _SIGN_IN_TEXT.search(line)
        belongs = _behind_in_text(behind, value)
    else:
        delimiter, start = opening
        sign = _OPENS_BEFORE.search(text[start : box.outer_start])
        if sign is None:
            return None
        closing = re.search(_CLOSING[delimiter], behind)
        inside = behind if closing is None else behind[: closing.start()]
        belongs = _behind_in_formula(inside, value)
        if belongs == "" and closing is not None and not re.sub(rf"{_SPACES}|}}", "", inside):
            belongs = _behind_in_text(behind[closing.end() :], value, touches=False)
    if belongs is None:
        return None
    if word and not belongs:
        if NUMBER.fullmatch(value) is None:  # the word goes on with the unit in the box: 5个 and 苹果
            value = f"{value[:-1]}{word}}}" if value.endswith("}") else f"{value}{word}"
        else:
            belongs = f"\\text{{ {word} }}"
    if sign is not None and sign["money"] and NUMBER.fullmatch(value):
        value = sign["money"] + value
    if sign is not None and sign["sign"] in ("-", "−"):
        value = f"-{value}" if re.fullmatch(r"\s*\\?[$€£¥￥＄]?[\d.,]+\s*", value) else f"-({value})"
    return f"{value}{belongs}"


def unit_behind(value: str, behind: str) -> str:
    """Return what the text behind a formula adds to its value, as LaTeX: a unit, a counted noun and so on; else ""."""
    return _behind_in_text(behind[:BEHIND_CHARS], value, touches=False) or ""


def labelled_unit_behind(value: str, behind: str) -> str:
    """Return the unit that a label announces behind a number (单位是升, "unit: cm"), as LaTeX; else ""."""
    behind = behind[:BEHIND_CHARS]
    if not _may_label_unit(behind) or NUMBER.fullmatch(value) is None:
        return ""
    label = _UNIT_LABEL.match(behind, _end_of(_BEFORE_LABEL.match(behind)))
    if label is None:
        return ""
    return _unit_beginning(behind[label.end() :].lstrip("$ "))


def end_of_unit(text: str, start: int, hi: int) -> int:
    r"""Return where the unit ends that begins text[start:hi], the text behind a box, if it is Chinese or has a power;
    else `start`.

    The 千 of 千克, or the 2 of `\text{ cm}^2`, is no number that the text behind an answer states.
    """
    behind = text[start : min(hi, start + BEHIND_CHARS)]
    raised = _RAISED_UNIT.match(behind)
    if raised is not None and _unit_in_formula(raised["unit"]):
        return start + raised.end()
    match = None if behind.isascii() else _CHINESE_UNIT.match(behind)
    return start if match is None or unit_of(match["unit"]) is None else start + match.end()


def _may_label_unit(behind: str) -> bool:
    """Whether a word that announces a unit stands in the text. A text search, which is faster than a pattern."""
    return "单位" in behind or "nit" in behind


def _end_of(match: re.Match[str] | None) -> int:
    """Return where a match ends; 0 if there is none."""
    return 0 if match is None else match.end()


def formula_around(text: str, position: int, lo: int) -> tuple[str, int] | None:
    """Return (opening delimiter, where the formula begins) of the formula around `position`; None outside a formula."""
    start = max(lo, position - BEFORE_CHARS)
    start = max(start, text.rfind("\n\n", start, position) + 1)
    opening: tuple[str, int] | None = None
    for match in _DELIMITER.finditer(text, start, position):
        sign = match.group()
        if sign in ("\\(", "\\["):
            opening = sign, match.end()
        elif sign in ("\\)", "\\]"):
            opening = None
        elif sign in ("$", "$$"):
            opening = None if opening is not None and opening[0] in ("$", "$$") else (sign, match.end())
    return opening


def _behind_in_formula(inside: str, value: str) -> str | None:
    """Return the text that `inside`, the rest of the formula behind a box, adds to the box's value, perhaps ""; None if
    the box is only a part of a larger expression.
    """
    if inside[:1] == "!":
        return None
    inside = re.sub(rf"\A(?:{_SPACES}|\}})*", "", _spelled_out(inside))
    belongs = _sign_or_bracket(inside)
    if not belongs and (name := _unit_in_formula(inside)):
        belongs = f"\\text{{ {name} }}"
    if belongs:
        return belongs if NUMBER.fullmatch(value) is not None else ""
    return "" if _PASSED_BEHIND.match(inside) is not None else None


def _behind_in_text(behind: str, value: str, *, touches: bool = True) -> str | None:
    """Return what the text behind a box adds to the box's value, perhaps ""; None if the box is only a part of a larger
    expression.

    touches: nothing stands between the box and the text, not even the end of a formula.
    """
    if touches and _PART_IN_TEXT.match(behind) is not None and not _unit_named(behind):
        return None
    if _COMPUTES.match(behind) is not None:
        return None
    if NUMBER.fullmatch(value) is None:
        return ""
    if (alternative := _ALTERNATIVE.match(behind)) is not None:
        return f" (or {alternative[1]})"
    if labelled := labelled_unit_behind(value, behind):
        return labelled
    behind = re.sub(rf"\A(?:[ \t*_`~]|{_COMMANDED_SPACES})*", "", behind)
    return None if _counts_on(behind) else _unit_beginning(behind)


def _spelled_out(text: str) -> str:
    """Return the text with LaTeX in place of characters that are a whole unit or a power: `^\\circ C` for ℃."""
    text = _POWER.sub(lambda power: "^" + (power["raised"] or str("²³".index(power["sign"]) + 2)), text)
    return _UNIT_OF_ONE_SIGN.sub(lambda sign: plain_latex(sign.group()), text)


def _counts_on(behind: str) -> bool:
    """Whether a unit begins the text and the number goes on behind it: 元五角, 元的一半, "dollars and fifty cents"."""
    if (further := _AND_FURTHER.match(behind)) is not None and (unit := unit_of(further["unit"])) is not None:
        smaller = unit_of(further["smaller"] or further["unit"])
        return smaller is not None and smaller.dimension == unit.dimension
    run = _CHINESE.match(behind)
    if run is None:
        return False
    name = _unit_named(behind) or next(
        (part for end in range(len(run.group()), 0, -1) if (part := behind[:end]) and _measures_or_counts(part)), ""
    )
    return bool(name) and _MORE.match(behind, len(name)) is not None


def _measures_or_counts(words: str) -> bool:
    return unit_of(words) is not None or is_counted(words)


def _unit_beginning(behind: str) -> str:
    """Return the unit, the sign or the counted noun that the text begins with, as LaTeX; else ""."""
    behind = _spelled_out(behind)
    if belongs := _sign_or_bracket(behind):
        return belongs
    name = _unit_in_formula(behind) if behind[:1] in ("\\", "{") else _unit_named(behind)
    return f"\\text{{ {name} }}" if name else ""


def _sign_or_bracket(behind: str) -> str:
    """Return a percent sign, a degree sign or a unit in brackets that the text begins with; empty without one."""
    if _PERCENT.match(behind) is not None:
        return "\\%"
    if (degrees := _DEGREES.match(behind)) is not None:
        return _SCALES[degrees["scale"]]
    bracket = _BRACKET.match(behind)
    if bracket is None:
        return ""
    inside = bracket[1][_end_of(_UNIT_LABEL.match(bracket[1])) :].strip()
    if (degrees := _DEGREES.fullmatch(inside)) is not None:
        return _SCALES[degrees["scale"]]
    name = _unit_in_formula(inside, whole=True) or _unit_in_brackets(bracket[1])
    return f"\\text{{ {name} }}" if name else ""


def _unit_in_brackets(inside: str) -> str:
    """Return the Chinese unit, or classifier with its noun, alone in brackets, perhaps behind 单位; else ""."""
    inside = inside.strip(_AROUND_UNIT)
    label = _UNIT_LABEL.match(inside)
    name = inside[_end_of(label) :].strip()
    if name and _measures(name):
        return name
    # Without a label 对 says that the number is right, and 本题 means this question.
    is_remark = label is None and (name == "对" or (name[:1] == "本" and len(name) > 1))
    return name if _CHINESE.fullmatch(name) is not None and is_counted(name) and not is_remark else ""


def _unit_in_formula(inside: str, *, whole: bool = False) -> str:
    """Return the unit that a part of a formula begins with, as words; empty if it begins with none.

    whole: the part must be nothing but the unit.
    """
    unit = _UNIT.fullmatch(inside) if whole else _UNIT.match(inside)
    if unit is None:
        return ""
    name = _COMMAND_OF_GROUP.sub("", _MICRO.sub("u", unit.group()).replace("\\cdot", "·"))
    name = re.sub(rf"{_SPACES}|[{{}}]", " ", name).strip()
    return name if unit_of(name) is not None else _unit_in_brackets(name) if name.endswith((")", "）")) else ""


def _unit_named(behind: str) -> str:
    """Return the unit, the numeral of scale ("million") or the counted noun that the text begins with; else ""."""
    if (chinese := _CHINESE.match(behind)) is not None:
        if (per := _CHINESE_PER.match(behind, chinese.end())) is not None:
            rates = (behind[:end] for end in range(per.end(), chinese.end(), -1))
            if (rate := next((rate for rate in rates if unit_of(rate) is not None), None)) is not None:
                return rate
        name = chinese.group().partition("的")[0]
        return name if name and (_measures(name) or is_counted(name)) else ""
    # Nothing stands behind most boxes: the rates are for the others.
    behind = with_per(behind) if behind else ""
    words = _LATIN_WORDS.match(behind)
    if words is None or _TIME_OF_DAY.match(behind) is not None:
        return ""
    parts = words.group().split(" ")
    names = [" ".join(parts[:n_words]).rstrip("-") for n_words in range(len(parts), 0, -1)]
    for name in names:
        if " " in name and not _AMBIGUOUS.isdisjoint(name.lower().split()):
            continue  # "degrees in the triangle" names no inches
        if _measures(name):
            after = behind[len(name) :]
            following = _NEXT_WORD.match(after)
            links = following is not None and following[1].lower() in _LINKS and name.lower() not in _AMBIGUOUS
            return name if links or _ENDS.match(after) is not None else ""
    return next((name for name in names if _ENDS.match(behind[len(name) :]) and is_counted(name)), "")


def _measures(name: str) -> bool:
    """Whether words are a unit, or a numeral of scale with or without a unit or a noun: "cm", "million", "万元"."""
    if unit_of(name) is not None:
        return True
    factor, rest = split_scale(name)
    return factor != 1 and (not rest or unit_of(rest) is not None or is_counted(rest))
