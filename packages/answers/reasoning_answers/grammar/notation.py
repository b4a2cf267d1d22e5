r"""The notation: which commands and words are functions, letters, symbols, relations, layout or currencies; and the
characters of an answer before tokens are made: escapes undone, units and Unicode as the LaTeX of the grammar.

Names: keys are LaTeX commands without their backslash, or words and signs of plain notation. The values are what the
grammar writes for them: `\leqslant`, `<=` and `=<` are all the relation `<=`.

Characters: only the code points of one table change. Unicode compatibility normalization (NFKC) is not used: it turns
`②` into `2` and expands a single character into up to eighteen.
"""

from __future__ import annotations

import re
import unicodedata

from reasoning_answers.grammar.tree import names
from reasoning_answers.grammar.units import unit_of
from reasoning_answers.patterns import regex

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_SCRIPTS = regex(f"[{''.join(_SUPERSCRIPTS)}]+|[{''.join(_SUBSCRIPTS)}]+")
"""Adjacent superscripts or adjacent subscripts."""

_GREEK = {
    letter: name.lower() if letter.islower() else name.capitalize()
    for letter in "αβγδεζηθικμνξπρστυφχψωΓΔΘΞΠΣΦΨΩ"
    for name in [unicodedata.name(letter).rpartition(" ")[2]]
} | {"λ": "lambda", "Λ": "Lambda", "ϕ": "phi", "ϵ": "epsilon", "ϑ": "theta"}
"""Greek letter → the name of its command."""

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-",
    "×": r"\times ", "✕": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ",
    "∕": "/", "⁄": "/", "∗": "*", "√": r"\sqrt ", "∛": r"\sqrt[3]", "∞": r"\infty ", "°": r"^\circ ", "º": r"^\circ ",
    "˚": r"^\circ ", "℃": r"^\circ C", "℉": r"^\circ F",
    "≤": r"\le ", "≦": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "≧": r"\ge ",
    "⩾": r"\ge ",
    "≠": r"\ne ", "≈": r"\approx ", "≃": r"\approx ", "≅": r"\approx ", "∼": r"\sim ", "≡": r"\equiv ", "±": r"\pm ",
    "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∉": r"\notin ", "∅": r"\emptyset ", "Ø": r"\emptyset ",
    "ø": r"\emptyset ", "∖": r"\setminus ", "∣": "|", "｜": "|", "∠": r"\angle ", "△": r"\triangle ", "∑": r"\sum ",
    "∏": r"\prod ", "∫": r"\int ", "→": r"\to ", "⇒": r"\Rightarrow ", "⟹": r"\Rightarrow ",
    "′": "'", "″": "''", "’": "'", "µ": r"\mu ", "٫": ".", "٬": ",",
    "‘": "'",
    "“": '"', "”": '"', "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "€": r"\euro ", "£": r"\pounds ",
    "¢": r"\text{cents}", "¥": r"\yen ", "￥": r"\yen ", "＄": r"\$", "％": r"\%",
    "개": "个", "명": "名", "：": ":", "∶": ":", "；": ";", "，": ",", "、": ",", "。": ".", "．": ".",
    "∥": r"\parallel ", "⊥": r"\perp ", "≌": r"\cong ", "∽": r"\sim ", "﹪": r"\%",
    "〜": "~", "【": "[", "】": "]", "〔": "(", "〕": ")", "《": "", "》": "", "…": r"\ldots ", "⋯": r"\ldots ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "〈": r"\langle ", "〉": r"\rangle ",
}  # fmt: skip
"""Unicode symbol → the LaTeX that it is read as."""

_UNIT_IN_ONE = regex(r"([a-zA-Zμ]{1,3}(?:/[a-z])?)([23]?)")
"""A unit as NFKC expands it from one character: ㎡ becomes m2."""

_REMOVED = (
    "✓✔✅☑\ufe0f"
    "\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u00ad\u061c"
)
"""Check marks, zero-width characters, and characters that set the writing direction."""

_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2028\u2029\u0085"


def _table() -> dict[int, str]:
    """Return the replacement of each code point that changes, as `str.translate` takes it."""
    table: dict[int, str] = {}
    for code in range(0xFF01, 0xFF5F):  # full-width ASCII
        table[code] = chr(code - 0xFEE0)
    for zero in "٠۰०০๐":
        table.update({ord(zero) + digit: str(digit) for digit in range(10)})
    for code in (*range(0x1D400, 0x1D800), *range(0x2100, 0x2139)):  # mathematical alphanumerics, letter-like
        # Normalized only in these blocks, and only if the result is a single letter or digit.
        plain = unicodedata.normalize("NFKC", chr(code))
        if plain.isascii() and len(plain) == 1 and plain.isalnum():
            table[code] = plain
    for code in range(0x1D6A8, 0x1D7CC):  # mathematical Greek
        if (plain := unicodedata.normalize("NFKC", chr(code))) in _GREEK:
            table[code] = f"\\{_GREEK[plain]} "
    for greek, name in _GREEK.items():
        table[ord(greek)] = f"\\{name} "
    for vulgar in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞":
        top, bottom = unicodedata.normalize("NFKC", vulgar).split("\u2044")
        table[ord(vulgar)] = rf"\frac{{{top}}}{{{bottom}}}"
    for sign, latex in _SIGNS.items():
        table[ord(sign)] = latex
    for mark in _REMOVED:
        table[ord(mark)] = ""
    for space in _SPACES:
        table[ord(space)] = " "
    for code in range(0x3371, 0x33E0):  # a unit in one character: ㎡, ㎏, ㎧
        unit = _UNIT_IN_ONE.fullmatch(unicodedata.normalize("NFKC", chr(code)).replace("\u2215", "/"))
        if unit is not None:
            table[code] = rf"\text{{ {unit[1]}}}" + (f"^{{{unit[2]}}}" if unit[2] else "")
    return table


_TABLE = _table()

_ENTITY = regex(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});")
"""A character as HTML writes it: &lt;, &#60;"""

_DOUBLED_COMMAND = regex(r"\\\\([A-Za-z]+)")
"""The command after two backslashes, as JSON escapes it: `\\\\frac`."""

_ONLY_DOUBLED_BACKSLASHES = regex(r"(?:[^\\]|\\\\)*")
"""A text without a single, undoubled backslash."""

_DECIMAL_COMMA = regex(r"(?<![\d}])(0(?=\{,\})|\d+(?=\{,\}(?:\d{1,2}|\d{4,})(?![\d{])))\{,\}(?=\d)")
"""`3{,}5`: a comma in braces that is not a thousands separator."""

_ROW_SPACING = regex(r"\\\\\[-?\d*\.?\d+(?:pt|em|ex|mm|cm)\]")
"""The end of a matrix row with its vertical space: `\\\\[4pt]`."""

_DOLLAR = regex(r"(?<!\\)\$")
"""A dollar sign without a backslash."""

_PRICE = regex(r"(?<![\w)\]}\\$])\$(?=\s?[-−]?\.?\d)")
"""A dollar sign directly before a number, and not after a letter, digit or closing bracket."""

_PRICE_BEHIND = regex(r"[^$]*\d\s?\$\s*")
"""A text whose only dollar sign is its last character, directly after a number."""

_OPEN_ENDS = regex(
    r"(?:(?<![\w)}\]])|(?<=cup)|(?<=cap)|(?<=in))(?:\\left\s*)?"
    r"([\[\](])((?=[^\[\]()]*[,;])[^\[\]()]{1,200}?)(?:\\right\s*)?([\[\])])"
)
"""Two ends between brackets that face either way: `[0, 1]`, and `]0, 1[`, whose brackets face outward at open ends."""

_HYPHENATED = regex(r"(?<=\d)-([a-z]{4,})(?![a-z(])")
"""A word joined to a number, which may be its unit: `43-yard`."""

_ANGSTROM = regex(r"[Å\u212b]|\\AA(?![A-Za-z])")
_SOLAR = regex(
    r"(?:\\(?:text|mathrm|rm)\s*+\{\s*+)?(?<![A-Za-z])([MLR])\s*+\}?\s*+_\s*+\{?\s*+(?:\\odot|\\(?:text|mathrm)\{sun\}|[⊙☉])\s*+\}?"
)
"""Astronomical units: the sun's mass, luminosity and radius: `M_\\odot`."""

_MICRO = regex(
    r"(\\(?:text|mathrm)\s*\{\s*~?\s*)(?:[µμ]|\\mu(?![A-Za-z]))\s*"
    r"|(?:\\mu\s*|[µμ])(\\(?:text|mathrm)\s*\{\s*~?\s*)(?=(?:mol|Hz|[mgsAlLVWFCJMT])\s*\})"
    r"|(?<=[\d\s])[µμ](?=(?:mol|Hz|[mgslLVWFCJT])(?![A-Za-z]))"
)
"""The micro sign as the prefix of a unit. If no unit follows, it is the letter mu."""


def plain_latex(text: str) -> str:
    """Return `text` with Unicode symbols as ASCII LaTeX: `√2` as `\\sqrt 2`. Unknown symbols stay; the grammar rejects
    them.
    """
    if text.isascii():
        return text
    return _SCRIPTS.sub(_script, text).translate(_TABLE)


def _script(run: re.Match[str]) -> str:
    """Neighboring superscripts, or subscripts, as one group: x¹² is x^{12}, x₁² is x_{1}^{2}."""
    command, signs = ("^", _SUPERSCRIPTS) if run[0][0] in _SUPERSCRIPTS else ("_", _SUBSCRIPTS)
    return f"{command}{{{''.join(signs[mark] for mark in run[0])}}}"


def plain_source(source: str) -> str:
    """Return an answer as the plain LaTeX that the tokenizer reads: escapes undone, units and Unicode replaced."""
    if "&" in source:
        import html  # its table of entities is long

        source = _ENTITY.sub(lambda entity: html.unescape(entity.group()), source)
    if "\\\\" in source:
        source = _undo_doubled_backslashes(_ROW_SPACING.sub(r"\\\\", source))
    if "$" in source:
        source = escape_prices(source)
    if "{,}" in source:
        source = _DECIMAL_COMMA.sub(r"\1.", source)
    if "[" in source or "]" in source:
        source = _OPEN_ENDS.sub(_open_ends, source)
    if "-" in source:
        source = _HYPHENATED.sub(lambda word: f" {word[1]}" if unit_of(word[1]) else word.group(), source)
    if "mu" in source or "µ" in source or "μ" in source:
        source = _MICRO.sub(lambda prefix: f"{prefix[1] or prefix[2] or ''}u", source)
    if "Å" in source or "AA" in source or "\u212b" in source:
        source = _ANGSTROM.sub(" angstrom ", source)
    if "_" in source:
        source = _SOLAR.sub(r"\\text{ solar\1}", source)
    return plain_latex(source.replace("{:}", ":").replace("{.}", ".")).strip()


def _open_ends(interval: re.Match[str]) -> str:
    """Return `(0, 1)` for `]0, 1[`: some countries write open ends with outward brackets."""
    opening, ends, closing = interval.groups()
    if opening != "]" and closing != "[":
        return interval.group()
    return f"{'[' if opening == '[' else '('}{ends}{']' if closing == ']' else ')'}"


def escape_prices(source: str) -> str:
    r"""Return `source` with prices such as `$24` written as `\$24`; formulas between dollar signs stay (`$24$`).

    Dollar signs mean money if each of them directly precedes a number and none closes a formula, or if the only one
    ends the text directly after a number.
    """
    if "$" not in source:
        return source
    if has_only_prices(source):
        return _PRICE.sub(r"\\$", source)
    if _PRICE_BEHIND.fullmatch(source) and not source.rstrip().endswith("\\$"):
        return f"{source.rstrip()[:-1]}\\$"
    return source


def has_only_prices(source: str) -> bool:
    """Whether each dollar sign in `source` directly precedes a number, and none closes a formula."""
    return len(_DOLLAR.findall(source)) == len(_PRICE.findall(source))


def _undo_doubled_backslashes(source: str) -> str:
    r"""Return `source` with single backslashes if it was escaped for JSON (`\\frac`); `\\` in a matrix stays."""
    if _ONLY_DOUBLED_BACKSLASHES.fullmatch(source) and any(map(is_command, _DOUBLED_COMMAND.findall(source))):
        return source.replace("\\\\", "\\")
    return source


# --- names ---
FUNCTIONS = names(
    "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh arccosh "
    "arctanh ln log lg exp gcd lcm max min det sgn deg Re Im arg floor ceil abs sqrt cbrt factorial binom binomial "
    "frac cis"
)
"""Functions, by their names in the tree."""

ALIASES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosec": "csc", "ctg": "cot", "tg": "tan",
    "arctg": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "sqrt": "sqrt", "dbinom": "binom",
    "tbinom": "binom", "binomial": "binom", "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "ceiling": "ceil",
    "sign": "sgn", "Abs": "abs", "arcosh": "arccosh", "arsinh": "arcsinh", "artanh": "arctanh", "lg": "lg",
}  # fmt: skip
"""Other spellings of functions, each with its name in `FUNCTIONS`."""

GREEK = names(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma "
    "varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar "
    "aleph nabla partial mho Re Im wp imath jmath top intercal"
)
"""Named letters; in a tree, each is a symbol with this name."""

CONSTANTS = {"pi": "pi", "infty": "inf", "infinity": "inf", "inf": "inf", "oo": "inf", "nan": "nan", "Pi": "pi"}
RELATIONS = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "=<": "<=", "=>": ">=", "!=": "!=", "<>": "!=",
    "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=",
    "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "approx": "≈", "approxeq": "≈", "simeq": "≈", "cong": "≈",
    "doteq": "≈", "equiv": "≡", "sim": "∼", "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊂", "perp": "⊥",
    "parallel": "∥", "coloneqq": "=", "triangleq": "=", "propto": "∝", "mapsto": "↦", "to": "→", "rightarrow": "→",
    "Rightarrow": "⇒", "implies": "⇒", "Leftrightarrow": "⇔", "iff": "⇔", "longrightarrow": "→",
}  # fmt: skip
"""Signs and commands for relations, each with its sign in a tree."""

IGNORED = names(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm middle displaystyle textstyle "
    "scriptstyle limits nolimits rm bf it boldsymbol bm mathbf mathit mathsf mathtt mathcal mathbb mathfrak mathscr "
    "boldmath vec overrightarrow hat widehat tilde widetilde quad qquad thinspace space enspace hspace hfill hline "
    "boxed fbox underline angle triangle nonumber therefore because mathop mathord mathrel scriptscriptstyle Bigm "
    "checkmark phantom textcolor strut normalsize large small color vphantom ensuremath cline num"
)
"""Layout commands, which do not change a value; their argument, if any, is read as usual."""

TEXTS = names("text textbf textrm textit textsf texttt mbox hbox mathrm operatorname textnormal textup emph")
"""Commands whose argument is words or upright mathematics."""

OPERATORS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "pm": "±", "mp": "∓", "cup": "∪",
    "cupdot": "∪", "bigcup": "∪", "sqcup": "∪", "uplus": "∪", "cap": "∩", "bigcap": "∩", "setminus": "∖",
    "backslash": "∖",
    "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "lbrace": "lset", "rbrace": "rset", "langle": "(",
    "rangle": ")",
    "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")", "colon": ":", "prime": "'", "lfloor": "lfloor",
    "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil", "circ": "°", "degree": "°", "over": "over",
    "choose": "choose",
    "Vert": "|", "lVert": "|", "rVert": "|", "ratio": ":",
    "dots": "…", "ldots": "…", "cdots": "…", "dotsc": "…", "bmod": "mod", "mod": "mod", "pmod": "pmod", "%": "%",
    "complement": "'", "textbackslash": "∖", "newline": "row", "cr": "row", "textdegree": "°", "dag": "'",
    "{": "lset", "}": "rset", "\\": "row", "|": "|",
    "percent": "%", "emptyset": "∅", "varnothing": "∅", "neg": "¬", "lnot": "¬", "forall": "∀", "exists": "∃",
}  # fmt: skip
"""Commands for operators, brackets and signs, each with the sign of its token."""

LOGIC = {"land": "∧", "wedge": "∧", "lor": "∨", "vee": "∨", "&": "and"}
"""Logical commands → the sign or word that joins items."""

MONEY = {
    "textdollar": "dollar",
    "dollar": "dollar",
    "$": "dollar",
    "euro": "euro",
    "pounds": "sterling",
    "yen": "yuan",
    "textyen": "yuan",
    "texteuro": "euro",
    "textsterling": "sterling",
}
"""Currency commands → the currency."""


_NAMES = {name: ("cmd", name) for name in FUNCTIONS} | {alias: ("cmd", name) for alias, name in ALIASES.items()}
_CONSTANTS = {name: ("cmd", constant) for name, constant in CONSTANTS.items()}
_LETTERS = {name: ("sym", name.removeprefix("var")) for name in GREEK}
COMMANDS = (
    _CONSTANTS
    | _LETTERS
    | _NAMES
    | {name: ("text", currency) for name, currency in MONEY.items()}
    | {name: (sign, sign) for name, sign in OPERATORS.items()}
    | {name: ("sep", sign) for name, sign in LOGIC.items()}
    | {name: ("rel", sign) for name, sign in RELATIONS.items()}
)
"""LaTeX command → kind and text of its token."""

WORDS = _LETTERS | _CONSTANTS | _NAMES | {"and": ("sep", "and"), "or": ("sep", "or"), "mod": ("mod", "mod")}
"""Word without a backslash → kind and text of its token."""

IN_ANY_CASE = names("infinity nan and or mod")
"""Words in `WORDS` that may be capitalized."""

_COMMAND_GROUPS = (COMMANDS, IGNORED, TEXTS, names("begin end sum prod lim int overline bar"))


def is_command(name: str) -> bool:
    """Whether `name` is a LaTeX command that the grammar recognizes."""
    return any(name in group for group in _COMMAND_GROUPS)


def split_run_on_command(name: str) -> str | None:
    r"""Return the command at the start of `name` if one or two letters run into it: `cot` for `\cotx`; else None."""
    if is_command(name):
        return None
    return next((name[:-size] for size in (1, 2) if len(name) > size + 1 and is_command(name[:-size])), None)
