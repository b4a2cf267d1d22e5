r"""Tokens of an answer: LaTeX and plain notation alike, one pass, no pattern that can backtrack far.

Decided here, because it depends on the characters: what is one number (thousands separators, e-notation, repeating
decimals), which letters are a function's name, a word or a product of variables, what is only layout.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

from harness.answers.bounds import MAX_TOKENS
from harness.answers.grammar.literals import Unreadable, number_value, repeated_block, repeating
from harness.answers.grammar.tree import names
from harness.answers.grammar.units import unit_of
from harness.answers.grammar.vocabulary import (
    ALIASES,
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    IGNORED,
    MONEY,
    OPERATORS,
    RELATIONS,
    TEXTS,
    fused,
)

Kind = Literal["num", "sym", "cmd", "text", "sep", "rel", "op", "begin", "end"]


class Token(NamedTuple):
    """kind, its text (a name, a sign, words), the exact value of a number, and whether a space stood before it."""

    kind: Kind
    text: str
    value: Fraction | None = None
    spaced: bool = False


_LATEX_GROUPED = re.compile(r"\d{1,3}(?:(?:'|\{,\}|,\s?\\[!,;: ]|\\[,!;: ]|~|\{\\,\}|\{ \})\s?\d{3})+(?!\d)(?:\.\d+)?")
_COMMA_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d])(?!,\d)(?:\.\d+)?")
_SPACE_GROUPED = re.compile(r"\d{1,3}(?: \d{3})+(?![\d/]| *\\d?frac)(?:\.\d+)?")
_REPEATING = re.compile(
    r"(\d*)\.(\d*)\s?(?:\\(?:overline|bar|dot|overset\{\\?\.\})\s?(?:\{(\d+)\}|(\d))(?:(\d*)\\dot\s?\{?(\d)\}?)?|\((\d+)\))"
)
_CONTINUED = re.compile(r"(\d*)\.(\d{2,})\s?(?:\.{2,}|\\[lc]?dots(?![a-zA-Z]))")
_NUMBER = re.compile(r"(?:\d+(?:\.\d+|\.(?![\d.]))?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_SPACE = re.compile(r"(?:\s|\\[,;:!> ]|\\(?=\s)|~|\$)+")
_ENVIRONMENT = re.compile(r"\{\s*([A-Za-z]+\*?)\s*\}(?:\s*\[[a-z]\])?(?:\s*\{[lcr|@{}\s]*\})?")
_CLOCK = re.compile(r"(?i)([ap])\.?\s?m(?:\.|\b)")
_MODULE = re.compile(r"(?:np|numpy|math|sp|sympy|mp|mpmath|cmath)\.(?=[a-zA-Z])")
_FUSED = re.compile(r"(arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|ln|log|exp|sqrt|pi)([a-zA-Z])")
_AFTER_POINT = re.compile(r"\d|\\(?:overline|bar|dot)\b")
_COMMA = re.compile(r",\s*")
_NAMES = re.compile(r"[A-Z]\w*(?:,\s*[A-Z]\w*)+")
_BASED = re.compile(
    r"(?=[0-9A-Z]*[A-Z])(?=[A-Z]*\d)[0-9A-Z]{2,}(?=_\s*\{?(?:1[1-9]|[23]\d)\b)"
    r"|(?=[0-9a-f]*[a-f])[0-9a-f]{2,}(?=_\s*\{?16\b)"
)
"""Digits beyond nine, known by their base: 1AAA0_11, 2a_16."""

_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]{1,300}|[bB][01]{1,300})(?![\w.])")

_REMARK = re.compile(r"\([A-Za-z][A-Za-z -]+\)")
_TEN = re.compile(r"\s*10\s*(?:\^|\*\*)")
_SIGN = re.compile(r"\*\*|<=|>=|==|!=|<>|=<|=>|\.\.\.+|[-+*/^_()\[\]{}|,;:=<>!'&%°…]|\"")
_CONNECTIVES = re.compile(r"(?i)(?:^|(?<=[\s,;]))(and|or)(?=$|[\s,;])|([或和及与且])")
_COMPUTES = {"plus": "+", "minus": "-", "negative": "-", "times": "*", "over": "/", "divided by": "/", "out of": "/"}
"""Words that compute where a number follows them: `5 over 2`, `negative 5`."""

_DIRECTED = re.compile(r"\s*\{\s*([A-Z])\s*([A-Z])\s*\}")
_OPERAND = re.compile(r"(?:[\s}$~({]|\\[,;: ])*[\d.\\]")
_BARE_UNITS = names("cm mm um km kg ft hr mph kph yd ml mg")
_PRODUCT_LETTERS = frozenset("abcdkmnpqrstxyzuvw")


def tokenize(source: str, *, list_commas: bool = False) -> list[Token]:
    """Tokens of `source`, which is `plain_latex` already. With `list_commas` a plain comma never groups digits.

    Raises `Unreadable` on characters that no answer has, and beyond the bounds.
    """
    return _Lexer(source, list_commas).run()


class _Lexer:
    def __init__(self, source: str, list_commas: bool) -> None:
        self.source = source
        self.at = 0
        self.brackets = 1 if list_commas else 0
        self.tokens: list[Token] = []
        self.spaced = False

    def run(self) -> list[Token]:
        source, size = self.source, len(self.source)
        while self.at < size:
            if len(self.tokens) > MAX_TOKENS:
                raise Unreadable("too many signs")
            space = _SPACE.match(source, self.at)
            if space is not None:
                self.at, self.spaced = space.end(), True
                if self.at >= size:
                    break
            mark = source[self.at]
            if (based := _BASED.match(source, self.at)) is not None:
                self.at = based.end()
                self.put("text", based.group().upper())
            elif (prefixed := _PREFIXED.match(source, self.at)) is not None:
                self.at = prefixed.end()
                self.put("num", prefixed.group(), Fraction(int(prefixed.group(), 0)))
            elif (mark.isdigit() and mark.isascii()) or (mark == "." and _AFTER_POINT.match(source, self.at + 1)):
                self.number()
            elif mark == ".":
                self.point()
            elif mark == "\\":
                self.command()
            elif mark.isascii() and mark.isalpha():
                self.word()
            elif (sign := _SIGN.match(source, self.at)) is not None:
                self.sign(sign)
            elif (run := _CJK.match(source, self.at)) is not None:
                self.at = run.end()
                self.words(run.group())
            else:
                raise Unreadable(f"unknown character U+{ord(mark):04X}")
            self.spaced = False
        return self.tokens

    def put(self, kind: Kind, text: str, value: Fraction | None = None) -> None:
        self.tokens.append(Token(kind, text, value, self.spaced))

    # --- numbers ---
    def number(self) -> None:
        source, at = self.source, self.at
        match = _LATEX_GROUPED.match(source, at)
        if match is None and not self.brackets and not self.follows_listed_number():
            match = _COMMA_GROUPED.match(source, at) or _SPACE_GROUPED.match(source, at)
        if match is not None:
            self.at = match.end()
            self.literal(re.sub(r"[^\d.]", "", match.group()))
            return
        if (match := _REPEATING.match(source, at)) is not None:
            whole, fixed, one, two, middle, closing, three = match.groups()
            block = (one or two or three) + ((middle or "") + closing if closing else "")
            self.at = match.end()
            self.put("num", "repeating", repeating(whole, fixed, block))
            return
        if (match := _CONTINUED.match(source, at)) is not None and (found := repeated_block(match[2])) is not None:
            self.at = match.end()
            self.put("num", "repeating", repeating(match[1], *found))
            return
        match = _NUMBER.match(source, at)
        if match is None:
            raise Unreadable("not a number")
        self.at = match.end()
        self.literal(match.group())

    def follows_listed_number(self) -> bool:
        """A digit group behind "27," is the next item of a list, not its thousands."""
        before = self.source[: self.at].rstrip()
        return before.endswith(",") and before[-2:-1].isdigit() and before[-1:] == self.source[self.at - 1 : self.at]

    def literal(self, digits: str) -> None:
        self.put("num", digits, number_value(digits))

    def point(self) -> None:
        end = self.at
        while end < len(self.source) and self.source[end] == ".":
            end += 1
        if end - self.at > 1:
            self.put("op", "…")
        elif self.source[end:].strip(" $.\\)]}"):
            raise Unreadable("a full stop inside the answer")
        self.at = end

    # --- commands ---
    def command(self) -> None:
        match = _COMMAND.match(self.source, self.at)
        if match is None:
            self.at += 1  # a backslash at the very end
            return
        self.at = match.end()
        self.named_command(match[1])

    def named_command(self, name: str) -> None:
        if name in ("overrightarrow", "vec") and (ends := _DIRECTED.match(self.source, self.at)) is not None:
            self.at = ends.end()
            self.put("cmd", f"directed {ends[1]}{ends[2]}")
        elif name in IGNORED:
            if name in ("left", "right") and self.source[self.at : self.at + 1] == ".":
                self.at += 1
            elif name in ("hspace", "color", "textcolor", "phantom", "vphantom"):
                self.braced()
        elif name in TEXTS:
            self.text(self.braced(), name)
        elif name in ("begin", "end"):
            environment = _ENVIRONMENT.match(self.source, self.at)
            if environment is None:
                raise Unreadable("an environment without a name")
            self.at = environment.end()
            self.put("begin" if name == "begin" else "end", environment[1].rstrip("*"))
        elif name in RELATIONS:
            self.put("rel", RELATIONS[name])
        elif name in OPERATORS:
            self.operator(OPERATORS[name])
        elif name in MONEY:
            self.put("text", MONEY[name])
        elif name in CONSTANTS:
            self.put("cmd", CONSTANTS[name])
        elif name == "not":
            self.negated()
        elif name in ("{", "}"):
            self.operator("lset" if name == "{" else "rset")
        elif name == "\\":
            self.put("op", "row")
        elif name == "|":
            self.put("op", "|")
        elif name in ("(", ")", "[", "]"):
            pass  # delimiters of a formula
        elif name == "&":
            self.put("sep", "and")
        elif name in ("#", "_"):
            raise Unreadable("an escaped sign")
        elif name in ALIASES or name in FUNCTIONS:
            self.put("cmd", ALIASES.get(name, name))
        elif name in GREEK:
            self.put("sym", name.removeprefix("var") if name != "varrho" else "rho")
        elif (inner := fused(name)) is not None:
            self.at -= len(name) - len(inner)
            self.named_command(inner)
        else:
            self.put("cmd", name)

    def operator(self, sign: str) -> None:
        if sign in ("∧", "∨"):
            self.put("sep", sign)
            return
        if sign in ("(", "[", "lset"):
            self.brackets += 1
        elif sign in (")", "]", "rset"):
            self.brackets -= 1
        self.put("op", sign)

    def negated(self) -> None:
        rest = self.source[self.at :].lstrip()
        if rest.startswith("="):
            self.at = self.source.index("=", self.at) + 1
            self.put("rel", "!=")
        elif rest.startswith("\\in"):
            self.at = self.source.index("\\in", self.at) + 3
            self.put("rel", "∉")
        else:
            raise Unreadable("a negated relation")

    def braced(self) -> str:
        """The text of the group that follows, its braces removed."""
        space = _SPACE.match(self.source, self.at)
        start = space.end() if space else self.at
        if self.source[start : start + 1] != "{":
            self.at = min(start + 1, len(self.source))
            return self.source[start : self.at]
        depth, end = 0, start
        while end < len(self.source):
            mark = self.source[end]
            if mark == "\\":
                end += 1
            elif mark == "{":
                depth += 1
            elif mark == "}":
                depth -= 1
                if depth == 0:
                    break
            end += 1
        self.at = end + 1
        return self.source[start + 1 : end]

    # --- words ---
    def text(self, content: str, command: str) -> None:
        r"""`\text{…}`: mathematics inside is read as such, words stay words."""
        content = content.strip("~ \t\n") if command != "text" else content
        plain = content.strip()
        if not plain:
            return
        bare = plain.replace("\\,", "").replace("\\ ", "")
        if plain in ("\\$", "$"):
            self.put("text", "dollar")
        elif plain in (":", ",", ";"):
            self.operator(plain)
        elif plain in ("\\%", "%", "mod"):
            self.put("op", plain[-1] if plain != "mod" else plain)
        elif (bare in FUNCTIONS or bare in ALIASES) and not (bare == "min" and self.follows_number()):
            self.put("cmd", ALIASES.get(bare, bare))
        elif len(bare) == 1 and bare.isalpha():
            self.put("text", bare)
        elif bare in CONSTANTS or bare.lower() in ("infinity", "nan"):
            self.put("cmd", CONSTANTS.get(bare) or CONSTANTS[bare.lower()])
        elif unit_of(bare.replace("\\cdot", "*").replace("{", "").replace("}", "")) is not None:
            self.put("text", bare.replace("\\cdot", "*").replace("{", "").replace("}", ""))
        elif _REMARK.fullmatch(plain):
            self.put("text", plain.strip("()"))
        elif re.search(r"[\d\\$(]", plain):
            inner = _Lexer(plain, bool(self.brackets))
            inner.spaced = self.spaced
            self.tokens.extend(inner.run())
        else:
            self.words(plain)

    def follows_number(self) -> bool:
        """`20 min`: minutes, not a minimum."""
        return bool(self.tokens) and self.tokens[-1].kind == "num"

    def words(self, content: str) -> None:
        """Words, with "and" and "or" taken out as separators."""
        at = 0
        for match in _CONNECTIVES.finditer(content):
            self.phrase(content[at : match.start()])
            word = (match[1] or match[2]).lower()
            self.put("sep", "or" if word in ("or", "或") else "and")
            at = match.end()
        self.phrase(content[at:])

    def phrase(self, content: str) -> None:
        content = content.strip(" ,;\t\n")
        if content == "to":
            self.put("op", ":")  # 3 to 2
        elif content.lower() in _COMPUTES and _OPERAND.match(self.source, self.at):
            self.put("op", _COMPUTES[content.lower()])
        elif content:
            for place, part in enumerate(_COMMA.split(content) if _NAMES.fullmatch(content) else [content]):
                if place:
                    self.put("op", ",")
                self.put("text", part)

    def word(self) -> None:
        source = self.source
        if (module := _MODULE.match(source, self.at)) is not None:
            self.at = module.end()
        previous = self.tokens[-1] if self.tokens else None
        if previous is not None and previous.kind == "num":
            clock = _CLOCK.match(source, self.at)
            if clock is not None:
                self.at = clock.end()
                self.put("text", clock[1].lower() + "m")
                return
        match = _WORD.match(source, self.at)
        if match is None:
            raise Unreadable("not a word")
        word = match.group()
        if len(word) == 1:
            self.at = match.end()
            if word in "xX" and previous is not None and previous.kind == "num" and _TEN.match(source, self.at):
                self.put("op", "*")  # 4.5 x 10^{33}
                return
            self.put("sym", word)
            return
        if (word in ALIASES or word in FUNCTIONS) and not (word == "min" and self.follows_number()):
            self.at = match.end()
            self.put("cmd", ALIASES.get(word, word))
            return
        lower = word.lower()
        if word in CONSTANTS or lower in ("infinity", "nan"):
            self.at = match.end()
            self.put("cmd", CONSTANTS.get(word) or CONSTANTS[lower])
        elif lower in ("and", "or", "mod"):
            self.at = match.end()
            self.put("op" if lower == "mod" else "sep", lower)
        elif word in GREEK:
            self.at = match.end()
            self.put("sym", word.removeprefix("var"))
        elif (fused := _FUSED.fullmatch(word)) is not None and fused[1] != "pi":
            self.at += len(fused[1])
            self.put("cmd", fused[1])
        elif (
            self.is_unit(word, previous) or self.is_word(word) or self.is_plural(word, previous)
        ) and not self.is_digits(word, match.end()):
            self.at = self.end_of_words(match.end())
            self.words(source[match.start() : self.at])
        else:
            self.at = match.end()
            for place, letter in enumerate(word):
                self.put("sym", letter)
                if place == 0:
                    self.spaced = False

    def is_unit(self, word: str, previous: Token | None) -> bool:
        return (
            previous is not None
            and (previous.kind == "num" or previous.text in (")", "}", "rset"))
            and (word in _BARE_UNITS or (len(word) >= 3 and (word in ("pct", "percent") or unit_of(word) is not None)))
        )

    def is_digits(self, word: str, end: int) -> bool:
        """Letters as digits of a number with a base: the BBA of 2BBA_14."""
        return word.isupper() and self.source.startswith("_", end)

    def is_word(self, word: str) -> bool:
        """English, or a product of variables? Three letters or more that are not all usual variables are a word."""
        if len(word) == 2:
            return word.lower() in ("no", "is", "of", "th", "at", "by", "in", "as", "if", "to", "st", "nd", "rd")
        if len(word) <= 4 and word[0].islower() and word[-1].isupper():
            return False  # nRT
        return not (len(word) <= 6 and _PRODUCT_LETTERS.issuperset(word))

    def is_plural(self, word: str, previous: Token | None) -> bool:
        """`5 ways`, `12 cards`: what was counted, though its letters could be variables."""
        counted = previous is not None and previous.kind == "num" and self.spaced
        return counted and len(word) > 3 and word.islower() and word.endswith("s") and not {"a", "u"}.isdisjoint(word)

    def end_of_words(self, at: int) -> int:
        """Words that follow with spaces between belong to the same phrase."""
        source = self.source
        while (space := re.compile(r"[ '’-]+").match(source, at)) is not None:
            more = _WORD.match(source, space.end())
            if more is None or more.group() in FUNCTIONS or (len(more.group()) == 1 and more.group() not in "aA"):
                break
            at = more.end()
        return at

    def sign(self, match: re.Match[str]) -> None:
        sign, self.at = match.group(), match.end()
        if sign == "<" and self.source.startswith("=", self.at):
            sign, self.at = "<=", self.at + 1
        if sign == '"':
            return
        if sign == "**":
            self.put("op", "^")
        elif sign in RELATIONS:
            self.put("rel", RELATIONS[sign])
        elif sign.startswith(".."):
            self.put("op", "…")
        else:
            self.operator(sign)
