"""The rules for atoms: numbers, letters, words, and everything between brackets.

A rule takes its first token or gets it from its caller, and leaves the cursor behind its last token. The state of the
cursor (`Cursor`), and who restores it:

    position    a rule that tries a form and returns None puts it back where it was
    depth       one more by `enter_rule`; the same rule takes it back
    bars        0 inside brackets, one more inside `|…|`; the rule that opens them restores it
    rows        set by square brackets for what stands directly inside them; the same rule restores it
    integrals   one more from an integral sign to the end of its body; the same rule takes it back

No rule catches `Unreadable`: it ends the parse, so a rule that raises restores nothing.
"""

from __future__ import annotations

import re

from harness.answers.grammar.cursor import CLOSING, OPENING
from harness.answers.grammar.latex_commands import Commands
from harness.answers.grammar.literals import Unreadable, places_of
from harness.answers.grammar.remarks import APPROXIMATE, leads_to_value
from harness.answers.grammar.tokens import MathToken
from harness.answers.grammar.tree import E, I, Node, num, sym
from harness.answers.grammar.units import unit_of

_COPULA = re.compile(r"(?i)(?<!\s)\s*+(?:(?<!:):|\b(?:is|are|equals|was|will\s+be)|等于|为|是|：)[\s:]*+\Z")
"""Matches the last word or colon of a text that names the value behind it: "The area is", 最大值是."""

_CURRENCIES = {
    "dollar": "dollar", "euro": "euro", "sterling": "sterling", "yuan": "yuan", "usd": "dollar", "us dollar": "dollar",
    "eur": "euro", "gbp": "sterling", "cny": "yuan", "rmb": "yuan",
}  # fmt: skip
_DIFFERENTIAL = ("d", "partial", "Delta", "delta")
"""Letters that make one quantity with the letter behind them: dx, ∂f, Δt are no products."""

_SIGNS = ("+", "-", "±", "∓")
_INSIDE_TERMS = (*_SIGNS, "*", "/", "^", "_", "!", "'", *OPENING, *CLOSING)
"""Signs that may stand in the arguments of a function. A bracket with any other sign is a list, a remark, a set …"""

_DENIES = re.compile(r"(?i)\b(?:not|no|nor|neither|never|wrong|incorrect|except)\b|n't|[不非没无否]")


class Atoms(Commands):
    """The rules of the grammar for atoms: numbers, letters, words and brackets."""

    def atom(self) -> Node:
        """Parse the atom that begins at the next token. Raises `Unreadable` if none can begin there."""
        token = self.take()
        if token.kind == "num":
            if self.peek().kind == "sym" and self.is_digit_run():
                return self.long_digits(token)
            if token.text[:2].lower() in ("0x", "0b"):
                return Node("base", (token.text, 16 if token.text[1] in "xX" else 2))
            return Node("num", (token.value, places_of(token.text)))
        if token.kind == "sym":
            return self.symbol(token)
        if token.kind == "cmd":
            return self.command(token.text)
        if token.kind == "text":
            return self.words(token)
        if token.kind == "begin":
            return self.environment(token.text)
        if token.kind == "op":
            if token.text == "_":
                self.position -= 1
                if (node := self.prescript()) is not None:
                    return node
            return self.parse_bracketed(token.text)
        raise Unreadable(f"unexpected {token.text!r}")

    def words(self, token: MathToken) -> Node:
        """Parse words: a currency before its amount, words that only introduce a value ("exactly 5"), else text."""
        text = token.text
        if len(text) == 1 and text.isascii():
            return self.symbol(token)
        if (currency := _CURRENCIES.get(text.lower())) is not None:
            if not (self.starts_atom() or self.is_op("-", "+")):
                raise Unreadable("a currency sign alone")
            value = self.signed_power()
            if value.op == "quantity":
                return value
            return Node("quantity", (value, currency))
        if self.starts_atom() or self.is_op("-", "+"):
            if leads_to_value(text):
                return self.signed_power()
            if text.lower() in APPROXIMATE:
                return Node("given", (self.signed_power(), "approximately"))
        return Node("text", (text,))

    def is_digit_run(self) -> bool:
        """Whether capitals and digits without spaces come next, with an index behind them: `A3` in `1A3_{16}`."""
        index = self.position
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.spaced or token.kind not in ("num", "sym") or len(token.text) > 12:
                break
            if token.kind == "sym" and not (len(token.text) == 1 and token.text.isupper()):
                return False
            index += 1
        after = self.tokens[index : index + 1]
        return bool(after) and after[0].kind == "op" and after[0].text == "_"

    def long_digits(self, first: MathToken) -> Node:
        """Parse a number in a base above ten, whose digits are several tokens; `first` is the first of these tokens."""
        digits = first.text
        while self.peek().kind in ("num", "sym"):
            digits += self.take().text
        self.expect("_")
        base = self.argument(whole_number=True)
        if base.op != "num" or base.args[0].denominator != 1:
            raise Unreadable("a base")
        return Node("base", (digits, int(base.args[0])))

    def symbol(self, token: MathToken) -> Node:
        """Parse a letter: i or e, digits of a base, combinations, a function with its argument, or a variable."""
        name = token.text
        # With an index i and e are letters: i_1, e_2.
        if name == "i" and not self.is_op("_"):
            return I
        if name == "e" and not self.is_op("_"):
            return E
        if token.kind == "sym" and name.isupper() and self.peek().kind in ("num", "sym") and self.is_digit_run():
            return self.long_digits(token)
        if name == "Gamma" and self.accept("("):
            argument = self.answer()
            self.expect(")")
            # Γ(n) is (n − 1)!.
            return Node("fn", ("factorial", Node("add", (argument, num(-1)))))
        if name in ("C", "A", "P") and (node := self.combinations(name)) is not None:
            return node
        if self.begins_differential(name):
            return sym(f"{name} {self.take().text}")
        return self.applied(name) if self.applies_function(name) else sym(name)

    def begins_differential(self, name: str) -> bool:
        """Whether the letter `name` and the letter behind it are one quantity: dx, ∂f, Δt.

        The d that ends an integral and the d of a unit, such as dm, are read by other rules.
        """
        if name not in _DIFFERENTIAL or self.peek().kind != "sym":
            return False
        return name != "d" or (self.integrals == 0 and unit_of(f"d{self.peek().text}") is None)

    def applied(self, name: str) -> Node:
        """Parse the arguments of the function `name`, with their brackets."""
        self.position += 1
        arguments = self.answer()
        if not self.accept(")", "]"):
            raise Unreadable("an open bracket")
        return Node("apply", (name, arguments))

    def applies_function(self, name: str) -> bool:
        """Whether `name` is a function whose arguments come next.

        f, g and h before a round bracket are functions. So is any letter before a bracket that holds a single term,
        which a product would not need: I(0), P(A), φ(n²). So is a capital before a bracket that holds a sum with a
        capital: E[X + Y], but not P(1 + r). name: a letter, perhaps with an index or primes.
        """
        if not self.is_op("(", "[") or self.peek().spaced:
            return False
        letter = name.rstrip("'").partition("_")[0]
        if letter in ("f", "g", "h") and self.is_op("("):
            return not (self.peek(1).kind == "sym" and self.peek(1).text == letter)
        inside = self.inside_brackets()
        if not all(token.kind in ("num", "sym", "cmd") or token.text in _INSIDE_TERMS for token in inside):
            return False
        if not any(token.text in _SIGNS for token in inside):
            return True
        return letter.isupper() and any(token.kind == "sym" and token.text.isupper() for token in inside)

    def inside_brackets(self) -> list[MathToken]:
        """Return the tokens inside the bracket that comes next, without those of brackets inside it."""
        inside: list[MathToken] = []
        depth = 1
        for token in self.tokens[self.position + 1 :]:
            depth -= token.kind == "op" and token.text in CLOSING
            if depth == 0:
                break
            if depth == 1:
                inside.append(token)
            depth += token.kind == "op" and token.text in OPENING
        return inside

    def combinations(self, name: str) -> Node | None:
        r"""Parse `C_{10}^{3}` and `C(10,3)` as a binomial coefficient, `A_5^2` and `P_5^2` as arrangements.

        None, without moving, if the letter `name` begins neither.
        """
        start = self.position
        node: Node | None = None
        if self.accept("_"):
            below = self.argument(whole_number=True)
            above = self.argument(whole_number=True) if self.accept("^") else None
            counts = below.op == "num" or (name == "C" and below in (sym("n"), sym("m")))
            if above is not None and counts and above.op in ("num", "sym"):
                node = Node("fn", ("binom" if name == "C" else "arrangements", below, above))
        elif name == "C" and self.is_op("(") and self.peek(2).text == "," and self.peek(4).text == ")":
            # C(a, b) of two letters is more often a point with its name.
            upper, lower = self.peek(1).value, self.peek(3).value
            if upper is not None and lower is not None:
                self.position += 5
                node = Node("fn", ("binom", num(upper), num(lower)))
        if node is None:
            self.position = start
        return node

    def prescript(self) -> Node | None:
        """Parse `{}_{10}C_4` and `_5P_2`, whose upper number stands in front; None, without moving, for all else."""
        start = self.position
        self.position += 1
        above = num(self.take().value or 0) if self.peek().kind == "num" else self.argument(whole_number=True)
        letter = self.take()
        if letter.kind == "sym" and letter.text in "CPA" and (self.accept("_") or self.accept("^")):
            below = self.argument(whole_number=True)
            return Node("fn", ("binom" if letter.text == "C" else "arrangements", above, below))
        self.position = start
        return None

    def parse_bracketed(self, sign: str) -> Node:
        """Parse the expression that opens with the bracket or sign `sign`, which the cursor has already passed."""
        if sign in ("(", "["):
            return self.round_or_square(sign)
        if sign == "{":
            return self.group()
        if sign == "lset":
            return self.braces()
        if sign in ("lfloor", "lceil"):
            inner = self.setwise()
            if not self.accept("rfloor", "rceil"):
                raise Unreadable("an open floor or ceiling")
            return Node("fn", ("floor" if sign == "lfloor" else "ceil", inner))
        if sign == "|":
            self.bars += 1
            inner = self.setwise()
            self.bars -= 1
            self.expect("|")
            return Node("det", (inner,)) if inner.op == "matrix" else Node("fn", ("abs", inner))
        if sign == "∅":
            return Node("set", ())
        if sign == "…":
            return sym("…")
        raise Unreadable(f"unexpected {sign!r}")

    def round_or_square(self, sign: str) -> Node:
        """Parse what is in round or square brackets: an expression, a tuple, an interval, a list, rows of a matrix.

        sign: the opening bracket, behind which the cursor stands.
        """
        self.enter_rule()
        bars, self.bars = self.bars, 0  # inside brackets a bar opens again
        # Directly inside square brackets, these brackets may be a row of a matrix.
        is_row = self.rows and self.peek(-2).text in ("[", ",")
        self.rows = sign == "["
        if self.accept(")", "]"):
            raise Unreadable("empty brackets")
        node = self.answer()
        self.bars, self.rows = bars, is_row
        trailing = self.peek(-1).text == ","
        closer = self.take().text
        if closer not in (")", "]"):
            raise Unreadable("an open bracket")
        self.depth -= 1
        if node.op != "list":
            if trailing:
                return Node("tuple", (node,))
            if is_row and (sign, closer) == ("[", "]") and self.is_op(",", "]"):
                return Node("bracket", (node,))  # a row with one entry: [[1], [2]]
            return node.args[0] if node.op == "bracket" and len(node.args) == 1 else node
        items = node.args
        if sign == "(" and closer == ")":
            return Node("tuple", items)
        if len(items) == 2 and (sign, closer) != ("[", "]"):
            return Node("interval", (items[0], items[1], sign == "[", closer == "]"))
        if (sign, closer) == ("[", "]"):
            if all(item.op == "bracket" and len(item.args) == len(items[0].args) for item in items):
                return Node("matrix", tuple(item.args for item in items))
            return Node("bracket", tuple(i.args[0] if i.op == "bracket" and len(i.args) == 1 else i for i in items))
        raise Unreadable("brackets of two kinds")

    def group(self) -> Node:
        """Parse the inside of LaTeX's braces, behind the opening brace: a group, or a set if it has commas or |."""
        token, after = self.peek(), self.peek(1)
        if token.kind == "num" and after.kind == "op" and after.text == "}" and token.text.isdigit():
            self.position += 2
            return Node("num", (token.value, -1))  # most groups are an integer, which no rule below reads otherwise
        self.enter_rule()
        if self.accept("}"):
            if self.is_op("_", "^") and (node := self.prescript()) is not None:
                self.depth -= 1
                return node
            return self.atom() if self.starts_atom() else Node("empty", ())
        # a degree sign in braces, as behind `30^`
        if self.is_op("°") and self.peek(1).text == "}":
            self.position += 2
            self.depth -= 1
            return Node("degree sign", ())
        # primes in braces, as behind `f^`
        if self.is_op("'"):
            while self.accept("'"):
                pass
            self.expect("}")
            self.depth -= 1
            return Node("prime sign", ())
        bars, self.bars = self.bars, 0
        node = self.answer()
        if self.accept("over"):
            bottom = self.answer()
            node = Node("div", (node, bottom))
        elif self.accept("choose"):
            bottom = self.answer()
            node = Node("fn", ("binom", node, bottom))
        elif self.is_op("|"):
            node = self.condition(node, "}")
            self.bars = bars
            self.depth -= 1
            return node
        self.bars = bars
        self.expect("}")
        self.depth -= 1
        return Node("set", node.args) if node.op == "list" else node

    def braces(self) -> Node:
        r"""Parse `\{…\}` from behind its opening: a set of items, or a set by a condition behind a bar or colon."""
        self.enter_rule()
        bars, self.bars = self.bars, 1  # the bar of {x | x > 0} opens no absolute value
        if self.accept("rset"):
            self.bars = bars
            self.depth -= 1
            return Node("set", ())
        start = self.position
        node = self.answer()
        if self.is_op("|"):
            node = self.condition(node, "rset")
        # {x : x > 0}, whose colon was read as that of a ratio
        elif node.op == "ratio" and len(node.args) == 2 and node.args[1].op in ("rel", "member"):
            node = Node("builder", (node.args[0], node.args[1]))
            self.expect("rset")
        # {x : x > 0, x < 1}, which was read as a list of conditions
        elif node.op == "list" and node.args[0].op == "rel" and self.tokens[start + 1].text == ":":
            first = self.builder_of_colon(node.args[0])
            if first.op != "builder":
                raise Unreadable("a set by a condition")
            node = Node("builder", (first.args[0], Node("list", (first.args[1], *node.args[1:]))))
            self.expect("rset")
        elif node.op == "rel" and any(token.text == ":" for token in self.tokens[start : self.position]):
            node = self.builder_of_colon(node)
            self.expect("rset")
        else:
            node = Node("set", node.args if node.op == "list" else (node,))
            self.expect("rset")
        self.bars = bars
        self.depth -= 1
        return node

    def builder_of_colon(self, node: Node) -> Node:
        """Return the set of `{x : x > 0}`; node: its inside, which the rules read as a ratio within a relation."""
        operands, signs = node.args
        first = operands[0]
        if first.op == "ratio" and len(first.args) == 2:
            return Node("builder", (first.args[0], Node("rel", ((first.args[1], *operands[1:]), signs))))
        if first.op == "sym" and signs == ("=",):
            return Node("builder", (first, operands[1]))
        return Node("set", (node,))

    def condition(self, variable: Node, closer: str) -> Node:
        """Parse the condition of a set, from its bar to the bracket `closer`; variable: what stands before the bar."""
        self.expect("|")
        condition = self.answer()
        self.expect(closer)
        if variable.op == "member" and variable.args[1] == sym("R"):
            variable = variable.args[0]
        return Node("builder", (variable, condition))


def is_name(words: str) -> bool:
    """Whether words name the value that follows: "The area is", 最大值是. False if they deny the value or change it."""
    return _COPULA.search(words) is not None and _DENIES.search(words) is None and not leads_to_value(words)


def name_in(words: str) -> str:
    """Return words that name a value, without their verb or colon."""
    return _COPULA.sub("", words)
