"""The names of the notation: which commands and words are a function, a letter, a sign, a relation, layout or money.

Keys are LaTeX commands without their backslash, or words and signs of plain notation. Values are what the grammar
writes for them: `\\leqslant`, `<=` and `=<` are all the relation `<=`.
"""

from __future__ import annotations

from harness.answers.grammar.tree import names

FUNCTIONS = names(
    "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh arccosh "
    "arctanh ln log lg exp gcd lcm max min det sgn deg Re Im arg floor ceil abs sqrt cbrt factorial binom binomial "
    "frac cis"
)
"""Functions, by the name that the tree has for them."""

ALIASES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosec": "csc", "ctg": "cot", "tg": "tan",
    "arctg": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "sqrt": "sqrt", "dbinom": "binom",
    "tbinom": "binom", "binomial": "binom", "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "ceiling": "ceil",
    "sign": "sgn", "Abs": "abs", "arcosh": "arccosh", "arsinh": "arcsinh", "artanh": "arctanh", "lg": "lg",
}  # fmt: skip
"""Other spellings of functions, each with the name in `FUNCTIONS`."""

GREEK = names(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma "
    "varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar "
    "aleph nabla partial mho Re Im wp imath jmath top intercal"
)
"""Letters with a name; a tree has each as a symbol of this name."""

CONSTANTS = {"pi": "pi", "infty": "inf", "infinity": "inf", "inf": "inf", "oo": "inf", "nan": "nan", "Pi": "pi"}
RELATIONS = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "=<": "<=", "=>": ">=", "!=": "!=", "<>": "!=",
    "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=",
    "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "approx": "≈", "approxeq": "≈", "simeq": "≈", "cong": "≈",
    "doteq": "≈", "equiv": "≡", "sim": "∼", "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊂", "perp": "⊥",
    "parallel": "∥", "coloneqq": "=", "triangleq": "=", "propto": "∝", "mapsto": "↦", "to": "→", "rightarrow": "→",
    "Rightarrow": "⇒", "implies": "⇒", "Leftrightarrow": "⇔", "iff": "⇔", "longrightarrow": "→",
}  # fmt: skip
"""Signs and commands of relations, each with the sign that a tree has for it."""

IGNORED = names(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm middle displaystyle textstyle "
    "scriptstyle limits nolimits rm bf it boldsymbol bm mathbf mathit mathsf mathtt mathcal mathbb mathfrak mathscr "
    "boldmath vec overrightarrow hat widehat tilde widetilde quad qquad thinspace space enspace hspace hfill hline "
    "boxed fbox underline angle triangle nonumber therefore because mathop mathord mathrel scriptscriptstyle Bigm "
    "checkmark phantom textcolor strut normalsize large small color vphantom ensuremath cline"
)
"""Commands of layout, which change no value; their argument, if they have one, is read as usual."""

TEXTS = names("text textbf textrm textit textsf texttt mbox hbox mathrm operatorname textnormal textup emph")
"""Commands whose argument is words, or mathematics set upright."""

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
"""Commands of operators, brackets and signs, each with the sign of its token."""

LOGIC = {"land": "∧", "wedge": "∧", "lor": "∨", "vee": "∨", "&": "and"}
"""Commands of logic → the sign or word that joins items."""

MONEY = {"textdollar": "dollar", "dollar": "dollar", "$": "dollar", "euro": "euro", "pounds": "sterling",
          "yen": "yuan", "textyen": "yuan", "texteuro": "euro", "textsterling": "sterling"}  # fmt: skip
"""Commands of currencies → the currency."""


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
"""Words of `WORDS` that may have capitals."""

_COMMAND_GROUPS = (COMMANDS, IGNORED, TEXTS, names("begin end sum prod lim int overline bar"))


def is_command(name: str) -> bool:
    """Whether `name` is a LaTeX command that the grammar reads."""
    return any(name in group for group in _COMMAND_GROUPS)


def split_run_on_command(name: str) -> str | None:
    r"""Return the command at the start of `name` if one or two letters ran into it: `cot` for `\cotx`; else None."""
    if is_command(name):
        return None
    return next((name[:-size] for size in (1, 2) if len(name) > size + 1 and is_command(name[:-size])), None)
