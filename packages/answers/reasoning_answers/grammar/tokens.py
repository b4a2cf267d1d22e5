r"""Tokens of an answer: the same for LaTeX and plain notation, in one pass, with no pattern that can backtrack far.

Everything that depends on characters is decided here, so that the grammar sees only tokens:

    kind    text                            from
    num     the digits, or "repeating"      1,234 · 1\,234 · 0.\overline{3} · 1.2e5; `value` is exact
    sym     the letter's name               x, \alpha; `ab` gives a and b
    cmd     a function or other command     sin, \sin, \frac, \pi, \sum
    text    words, a unit, a currency       \text{cm}, apples, \$; digits of a base: 1F
    sep     and, or, 且, ∧, ∨               joins items
    rel     the sign of `notation`          =, <, \le, \in
    op      a sign, a bracket, ","          + ^ ( lset rset row ° …; "lset" is \{
    begin, end   the environment            \begin{cases}

Letters without a backslash: the name of a function or constant means that function or constant; a known unit after a
number or bracket is a unit; otherwise three or more letters are a word, or a product if all of them are common
variables (`is_word`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from reasoning_answers.bounds import MAX_TOKENS
from reasoning_answers.grammar.notation import (
    COMMANDS,
    FUNCTIONS,
    IGNORED,
    IN_ANY_CASE,
    RELATIONS,
    TEXTS,
    WORDS,
    split_run_on_command,
)
from reasoning_answers.grammar.numerals import Unreadable, number_at, number_value
from reasoning_answers.grammar.tree import names
from reasoning_answers.grammar.units import unit_of


class MathToken(NamedTuple):
    """A token of a mathematical answer: its kind (number, letter, operator, …), its text, the value of a number, and
    whether a space preceded it.
    """

    kind: str
    text: str
    value: Fraction | None = None
    spaced: bool = False


_NO_TOKEN = MathToken("", "")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_MODULE = re.compile(r"(?:np|numpy|math|sp|sympy|mp|mpmath|cmath)\.(?=[a-zA-Z])")
"""The name of a Python module in `np.sqrt` or `math.pi`, which adds nothing; Minerva references contain it."""

_BETWEEN_WORDS = re.compile(r"[ '’-]+")
"""The characters between two words of one phrase."""

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_SPACE = re.compile(r"(?:\s|\\[,;:!> ]|\\(?=\s)|~|\$)+")
_ENVIRONMENT = re.compile(r"\{\s*([A-Za-z]+\*?)\s*\}(?:\s*\[[a-z]\])?(?:\s*\{[lcr|@{}\s]*\})?")
"""The name of an environment, with its columns: `{array}{cc}`."""

_AFTER_POINT = re.compile(r"\d|\\(?:overline|bar|dot)\b")
"""The first token after a point that begins a number: the 5 of .5"""
_BASED = re.compile(
    r"(?=\d*[A-Z])[0-9A-Z]{2,}(?=_\s*\{?(?:1[1-9]|[23]\d)\b)|[A-Z]{2,}(?=_\s*\{?\d)"
    r"|(?=[0-9a-f]*[a-f])[0-9a-f]{2,}(?=_\s*\{?16\b)"
)
"""Digits with letters among them before a base above ten: 1AAA0_11, 2a_16."""

_HEX_OR_BINARY = re.compile(r"0(?:[xX][0-9a-fA-F]{1,300}|[bB][01]{1,300})(?![\w.])")

_TEN = re.compile(r"\s*10\s*(?:\^|\*\*)")
"""The power of ten after the x of 4.5 x 10^33."""

_SIGN = re.compile(r"\*\*|<=|>=|==|!=|<>|=<|=>|\.\.\.+|[-+*/^_()\[\]{}|,;:=<>!'&%°…]|\"")
_CONNECTIVES = re.compile(r"(?i)(?:^|(?<=[\s,;]))(and|or)(?=$|[\s,;])|([或和及与且])")
""""and" and "or" among words, in English and Chinese."""

_COMPUTES = {"plus": "+", "minus": "-", "negative": "-", "times": "*", "over": "/", "divided by": "/", "out of": "/"}
"""Words that are operators if a number follows them: `5 over 2`, `negative 5`."""

_THIN_SPACE = re.compile(r"\\[,;:! ]|~")
_NEXT_NUMBER = re.compile(r"\s*\d")
_EXPONENT = re.compile(r"[+-]?\d{1,4}(?![\d.])")
"""The exponent of a number in e-notation: what follows its e."""

_DIRECTED = re.compile(r"\s*\{\s*([A-Z])\s*([A-Z])\s*\}")
"""The two points in a vector's name: `\\vec{AB}`."""

_OPERAND = re.compile(r"(?>(?:[\s}$~({]++|\\[,;: ])*)[\d.\\]")
"""The beginning of a number or a command, after layout."""

_BARE_UNITS = names("cm mm um km kg ft hr mph kph yd ml mL mg")
"""Units that are recognized after a number without a command; other letters there are variables."""

_MAX_TEXTS = 20
"""Deepest nesting of mathematics in text commands."""

_PRODUCT_LETTERS = frozenset("abcdkmnpqrstxyzuvw")
"""Common variables: up to six adjacent ones form a product."""


def tokenize(source: str, *, list_commas: bool = False) -> list[MathToken]:
    """Return the tokens of `source`, a result of `plain_source`. list_commas: a plain comma separates items, never
    digits.

    Raises `Unreadable`: a character is unknown to the grammar, a number or command cannot be read, or a limit is
    exceeded.
    """
    return _Lexer(source, list_commas).run()


class _Lexer:
    """Makes the tokens of one answer: its characters, the position in them, and the tokens so far.

    Each method reads what begins at the position, moves the position past it, and appends tokens.

    depth: number of text commands around the source. brackets: number of open brackets; inside one, a plain comma
    separates items and never groups digits, as in (1,234). spaced: whether a space precedes the current token.
    """

    def __init__(self, source: str, list_commas: bool, depth: int = 0) -> None:
        self.source, self.depth = source, depth
        self.position = 0
        self.brackets = 1 if list_commas else 0  # with one never closed, no plain comma groups digits
        self.tokens: list[MathToken] = []
        self.spaced = False

    def run(self) -> list[MathToken]:
        """Return the tokens of the whole answer."""
        source, size = self.source, len(self.source)
        while self.position < size:
            if len(self.tokens) > MAX_TOKENS:
                raise Unreadable("too many signs")
            mark = source[self.position]
            if (mark in "\\$~" or mark.isspace()) and (space := _SPACE.match(source, self.position)) is not None:
                self.position, self.spaced = space.end(), True
                if self.position >= size:
                    break
                mark = source[self.position]
            # Before numbers: the 1 of 1F_{16} would be read as a separate number.
            if mark.isalnum() and (based := _BASED.match(source, self.position)) is not None:
                self.position = based.end()
                self.put("text", based.group().upper())
            elif mark == "0" and (prefixed := _HEX_OR_BINARY.match(source, self.position)) is not None:
                self.position = prefixed.end()
                self.put("num", prefixed.group(), Fraction(int(prefixed.group(), 0)))
            # `isdigit` is true for ² and for Arabic digits too, which no pattern below reads.
            elif (mark.isdigit() and mark.isascii()) or (mark == "." and _AFTER_POINT.match(source, self.position + 1)):
                self.number()
            elif mark == ".":
                self.point()
            elif mark == "\\":
                self.command()
            elif mark.isascii() and mark.isalpha():
                self.word()
            elif (sign := _SIGN.match(source, self.position)) is not None:
                self.sign(sign)
            elif (run := _CJK.match(source, self.position)) is not None:
                self.position = run.end()
                self.words(run.group())
            else:
                raise Unreadable(f"unknown character U+{ord(mark):04X}")
            self.spaced = False
        return self.tokens

    @property
    def previous(self) -> MathToken:
        """The last token so far; before the first one, a token with an empty kind and text."""
        return self.tokens[-1] if self.tokens else _NO_TOKEN

    def put(self, kind: str, text: str = "", value: Fraction | None = None) -> None:
        """Append a token; the text of an operator is its kind."""
        self.tokens.append(MathToken(kind, text or kind, value, self.spaced))

    # --- numbers ---
    def number(self) -> None:
        """Read a number: with grouped digits (1,234), repeating decimals, or plain."""
        self.position, digits, value = number_at(self.source, self.position, may_group=not self.brackets)
        self.put("num", digits, value)

    def point(self) -> None:
        """Read dots: two or more are an ellipsis; a single one may only end the answer."""
        end = self.position
        while end < len(self.source) and self.source[end] == ".":
            end += 1
        if end - self.position > 1:
            self.put("…")
        elif self.source[end:].strip(" $.\\)]}"):
            raise Unreadable("a period inside the answer")
        self.position = end

    # --- commands ---
    def command(self) -> None:
        """Read a command: a backslash, and the letters or the sign after it."""
        match = _COMMAND.match(self.source, self.position)
        if match is None:
            self.position += 1  # a backslash at the very end
            return
        self.position = match.end()
        self.named_command(match[1])

    def named_command(self, name: str) -> None:
        r"""Append the tokens of the command `name`, whose letters have already been read.

        An argument that is not a formula, such as the length after `\hspace`, is read with the command.
        """
        source = self.source
        if name in ("overrightarrow", "vec") and (ends := _DIRECTED.match(source, self.position)) is not None:
            self.position = ends.end()
            self.put("cmd", f"directed {ends[1]}{ends[2]}")
        elif name in IGNORED:
            if name in ("hspace", "color", "textcolor", "phantom", "vphantom"):
                self.braced_text()
        elif name in TEXTS:
            self.text(self.braced_text(), name)
        elif name in ("begin", "end"):
            environment = _ENVIRONMENT.match(source, self.position)
            if environment is None:
                raise Unreadable("an environment without a name")
            self.position = environment.end()
            self.put(name, environment[1].rstrip("*"))
        elif (token := COMMANDS.get(name)) is not None:
            self.operator(*token)
        elif name in ("(", ")", "[", "]"):
            pass  # \( and \) begin and end a formula
        elif name in ("#", "_", "not"):
            raise Unreadable("an escaped character")
        elif (inner := split_run_on_command(name)) is not None:
            self.position -= len(name) - len(inner)
            self.named_command(inner)
        else:
            self.put("cmd", name)

    def operator(self, kind: str, text: str = "") -> None:
        """Append a token, and count brackets."""
        if kind in ("(", "[", "lset"):
            self.brackets += 1
        elif kind in (")", "]", "rset"):
            self.brackets -= 1
        self.put(kind, text)

    def braced_text(self) -> str:
        """Return the text between the braces that follow, or the next character if there are none; move past it."""
        space = _SPACE.match(self.source, self.position)
        start = space.end() if space else self.position
        if not self.source.startswith("{", start):
            self.position = min(start + 1, len(self.source))
            return self.source[start : self.position]
        depth, end = 0, len(self.source)
        for mark in _BRACE.finditer(self.source, start):
            depth += (mark.group() == "{") - (mark.group() == "}")
            if depth == 0:
                end = mark.start()
                break
        self.position = end + 1
        return self.source[start + 1 : end]

    # --- words ---
    def text(self, content: str, command: str) -> None:
        r"""Append the tokens inside `\text{…}` or a similar command: a function, a formula, a unit, or words."""
        content = content.strip("~ \t\n") if command != "text" else content
        plain = content.strip()
        bare = " ".join(_THIN_SPACE.sub(" ", plain).split())
        as_unit = bare.replace("\\cdot", "*").replace("{", "").replace("}", "")
        if plain in (":", ",", ";", "\\%", "%"):
            self.put(plain[-1])
        elif bare in ("e", "E") and (exponent := _EXPONENT.match(self.source, self.position)) and self.follows_number():
            self.position = exponent.end()  # 1.5\text{e}3 is a number in floating point
            self.spaced = self.tokens[-1].spaced
            digits = f"{self.tokens.pop().text}e{exponent.group()}"
            self.put("num", digits, number_value(digits))
        elif bare in ("i", "e"):
            self.put("sym", bare)  # the upright constants
        elif len(bare) == 1 and bare.isalpha() and not _CONNECTIVES.fullmatch(bare):
            self.put("text", bare)
        elif (token := self.named(bare)) is not None:
            self.put(*token)
        elif unit_of(as_unit) is not None:
            self.put("text", as_unit)
        elif plain.isalnum() and plain.isupper() and self.source.startswith("_", self.position):
            self.put("text", plain)  # digits of a base above ten
        elif re.search(r"[\d\\$(]", plain):
            if self.depth == _MAX_TEXTS:
                raise Unreadable("nested too deeply")
            inner = _Lexer(plain, bool(self.brackets), self.depth + 1)  # mathematics
            inner.spaced = self.spaced
            self.tokens.extend(inner.run())
        else:
            self.words(plain)

    def named(self, word: str) -> tuple[str, str] | None:
        """Return the kind and text of the token for a word without a backslash; None if the word has no such token."""
        if word == "min" and self.follows_number():
            return None  # minutes
        lower = word.lower()
        return WORDS.get(lower if lower in IN_ANY_CASE else word)

    def follows_number(self) -> bool:
        """Whether the last token is a number: `min` after it means minutes, not the minimum."""
        return self.previous.kind == "num"

    def words(self, content: str) -> None:
        """Append words; "and" and "or" among them become separators."""
        start = 0
        for match in _CONNECTIVES.finditer(content):
            self.phrase(content[start : match.start()])
            word = (match[1] or match[2]).lower()
            self.put("sep", "or" if word in ("or", "或") else "且" if word == "且" else "and")
            start = match.end()
        self.phrase(content[start:])

    def phrase(self, content: str) -> None:
        """Append the token of words without "and" and "or": an operator for words such as "plus", otherwise a text."""
        content = content.strip(" ,;\t\n")
        if content == "to":
            self.put(":")  # "3 to 2" is a ratio
        elif content.lower() in _COMPUTES and _OPERAND.match(self.source, self.position):
            self.put(_COMPUTES[content.lower()])
        elif content:
            self.put("text", content)

    def word(self) -> None:
        """Read letters without a backslash: a function, a constant, words, or a product of variables."""
        source = self.source
        if (module := _MODULE.match(source, self.position)) is not None:
            self.position = module.end()
        match = _WORD.match(source, self.position)
        if match is None:
            raise Unreadable("not a word")
        word = match.group()
        self.position = match.end()
        if len(word) == 1:
            self.letter(word)
        elif (token := self.named(word)) is not None:
            self.put(*token)
        elif self.is_unit(word) or self.is_word(word) or self.is_plural(word):
            self.position = self.end_of_words(match.end())
            self.words(source[match.start() : self.position])
        else:
            for letter in word:
                self.put("sym", letter)
                self.spaced = False

    def letter(self, letter: str) -> None:
        """Append the token of a single letter: a variable, an x that multiplies, or the h of hours."""
        if letter in "xX" and self.follows_number() and _TEN.match(self.source, self.position):
            self.put("*")  # 4.5 x 10^{33}
        elif letter == "h" and self.follows_number() and _NEXT_NUMBER.match(self.source, self.position):
            self.put("text", letter)  # 2 h 30 min
        else:
            self.put("sym", letter)

    def is_unit(self, word: str) -> bool:
        """Whether `word` is the unit of the preceding number, π or bracket."""
        if not self.follows_number() and self.previous.text not in (")", "}", "rset", "pi"):
            return False
        if word in _BARE_UNITS or word in ("pct", "percent"):
            return True
        return len(word) >= 3 and unit_of(word) is not None

    def is_word(self, word: str) -> bool:
        """Whether two or more letters are an English word or the end of an ordinal (`2nd`), not a product of variables.

        Two letters count only if they are listed. `nRT` and up to six common variables are a product.
        """
        if len(word) == 2:
            if word in ("st", "nd", "rd"):
                return self.follows_number() or self.previous.text in ("^", "{")  # in a + nd it is a product
            return word.lower() in ("no", "is", "of", "th", "at", "by", "in", "as", "if", "to")
        if len(word) <= 4 and word[0].islower() and word[-1].isupper():
            return False  # nRT is a product
        return not (len(word) <= 6 and _PRODUCT_LETTERS.issuperset(word))

    def is_plural(self, word: str) -> bool:
        """Whether a plural after a number says what was counted (`5 ways`), although its letters could be variables."""
        counted = self.follows_number() and self.spaced
        # `_PRODUCT_LETTERS` has no vowels other than a and u, and a plural has a vowel: `2 abcs` is a product as well.
        return counted and len(word) > 3 and word.islower() and word.endswith("s") and not {"a", "u"}.isdisjoint(word)

    def end_of_words(self, end: int) -> int:
        """Return the end of a phrase: a run of words with only spaces between them. end: the end of the first word."""
        source = self.source
        while (space := _BETWEEN_WORDS.match(source, end)) is not None:
            following = _WORD.match(source, space.end())
            word = following[0] if following is not None else ""
            # A letter is a variable, except for the article.
            if following is None or word in FUNCTIONS or (len(word) == 1 and word not in "aA"):
                break
            end = following.end()
        return end

    def sign(self, match: re.Match[str]) -> None:
        """Append the token of a sign of plain notation: `<=`, `**`, `+`."""
        sign, self.position = match.group(), match.end()
        if sign == "**":
            self.put("^")
        elif sign in RELATIONS:
            self.put("rel", RELATIONS[sign])
        else:
            self.operator(sign)
