r"""The grammar: tokens of an answer to a tree, by recursive descent, bounded in depth and length.

    answer    = item { ("," | ";" | "and" | "or") item }
    item      = [label ":"] chain
    chain     = setwise { relation setwise }
    setwise   = sum { ("∪" | "∩" | "∖") sum }
    sum       = ["+" | "-" | "±"] product { ("+" | "-" | "±") product }
    product   = power { ["*" | "/" | "mod"] power }            side by side is a product
    power     = atom { "^" … | "_" … | "!" | "°" | "%" | "'" | unit }
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from harness.grading.bounds import MAX_ANSWER_CHARS, MAX_DEPTH
from harness.grading.characters import plain_latex
from harness.grading.tokens import Token, Unreadable, places_of, tokenize
from harness.grading.tree import E, I, INFINITY, PI, SETS, Node, neg, num, sym

_END = Token("end", "")
_MATRICES = frozenset("matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix array smallmatrix".split())
_QUALIFIERS = ("for", "where", "if", "when", "with", "such", "as", "given", "provided", "on", "over", "其中", "为任意", "当")
_HEDGES = frozenset("approximately about exactly approx roughly around nearly is are only 约 大约 约为 等于 共 共有".split())
_BARE_ARGUMENT_STOP = frozenset("+ - ± ∓ * / ) ] } rset , ; | & row ∪ ∩ ∖ : mod rfloor rceil …".split())


def parse(source: str, *, list_commas: bool = False) -> Node:
    """The tree of an answer. Raises `Unreadable` when it is no mathematics of this grammar or breaks a bound."""
    return _parse(source, list_commas)


@lru_cache(maxsize=4_096)
def _parse(source: str, list_commas: bool) -> Node:
    if len(source) > MAX_ANSWER_CHARS:
        raise Unreadable("too long")
    tokens = tokenize(plain_latex(source).strip(), list_commas=list_commas)
    while tokens and (tokens[-1].text in (",", ";", ":", "row") and tokens[-1].kind == "op"):
        tokens.pop()
    if not tokens:
        raise Unreadable("empty")
    parser = _Parser(tokens)
    node = parser.answer()
    if parser.at < len(tokens):
        raise Unreadable(f"unexpected {parser.peek().text!r}")
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0

    # --- cursor ---
    def peek(self, ahead: int = 0) -> Token:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else _END

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def is_op(self, *signs: str) -> bool:
        token = self.peek()
        return token.kind == "op" and token.text in signs

    def accept(self, *signs: str) -> bool:
        if self.is_op(*signs):
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise Unreadable(f"{sign!r} expected, {self.peek().text!r} found")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")

    # --- answer and lists ---
    def answer(self) -> Node:
        groups: list[Node] = []
        items: list[Node] = []
        while True:
            while self.peek().kind == "sep" or self.is_op(",", ";"):
                self.at += 1
            if self.at >= len(self.tokens) or self.is_op(")", "]", "}", "rset", "row", "&") or self.peek().kind == "end":
                break
            items.append(self.item())
            if self.peek().kind == "sep" or self.is_op(","):
                continue
            if self.is_op(";"):
                groups.append(items[0] if len(items) == 1 else Node("list", tuple(items)))
                items = []
                continue
            break
        if groups:
            if items:
                groups.append(items[0] if len(items) == 1 else Node("list", tuple(items)))
            items = groups
        if not items:
            raise Unreadable("empty")
        return items[0] if len(items) == 1 else Node("list", tuple(items))

    def item(self) -> Node:
        """One answer, without its label in words and the qualification behind it."""
        self.deeper()
        node = self.chain()
        if self.is_op(":"):
            parts = [node]
            while self.accept(":"):
                if not self.starts_atom() and not self.is_op("-", "+"):
                    break
                parts.append(self.chain())
            node = parts[0] if len(parts) == 1 else self.colon(parts)
        self.skip_qualifier()
        self.depth -= 1
        return node

    def skip_qualifier(self) -> None:
        token = self.peek()
        if token.kind == "text" and token.text.lower().startswith(_QUALIFIERS):
            while self.at < len(self.tokens):
                if self.is_op(",", ";") and (self.peek(1).kind == "sep" or self.labelled(self.at + 1)):
                    return
                if self.peek().kind == "sep" and self.labelled(self.at + 1):
                    return
                if self.is_op(")", "]", "}", "rset", "row", "&") or self.peek().kind == "end":
                    return
                self.at += 1

    def labelled(self, place: int) -> bool:
        """A new "f(x) = …" begins at `place`, close by."""
        return any(token.kind == "rel" and token.text == "=" for token in self.tokens[place : place + 6])

    def colon(self, parts: list[Node]) -> Node:
        if parts[0].op == "text" or (parts[0].op == "sym" and len(parts) == 2 and parts[1].op in ("rel",)):
            return Node("rel", ((parts[0], parts[-1]), ("=",)))
        last = parts[-1]
        if len(parts) == 2 and parts[1].op == "rel":  # 11:21 = V1:V2 written the other way round
            operands, signs = parts[1].args
            return Node("rel", ((Node("ratio", (parts[0], operands[0])), *operands[1:]), signs))
        half = ""
        if last.op == "quantity" and last.args[1] in ("am", "pm"):
            half, parts = last.args[1], [*parts[:-1], last.args[0]]
        clock = [part.args[0] for part in parts if part.op == "num" and part.args[0].denominator == 1]
        if half and len(clock) == len(parts) and len(parts) <= 3:
            return Node("time", (tuple(parts), half))
        if parts[0].op == "rel":  # V1:V2 = 11:21
            operands, signs = parts[0].args
            return Node("rel", ((*operands[:-1], Node("ratio", (operands[-1], *parts[1:]))), signs))
        return Node("ratio", tuple(parts))

    # --- relations and sets ---
    def chain(self) -> Node:
        operands = [self.setwise()]
        signs: list[str] = []
        while self.peek().kind == "rel":
            sign = self.take().text
            signs.append(sign)
            if self.at >= len(self.tokens):
                raise Unreadable("a relation without a right side")
            operands.append(self.ratio_or_setwise() if sign in "=≈" else self.setwise())
        if not signs:
            return operands[0]
        if len(signs) == 1 and signs[0] == "∈":
            return Node("member", (operands[0], operands[1]))
        return Node("rel", (tuple(operands), tuple(signs)))

    def ratio_or_setwise(self) -> Node:
        node = self.setwise()
        if self.is_op(":") and self.depth < 6:
            parts = [node]
            while self.accept(":"):
                parts.append(self.setwise())
            return self.colon(parts)
        return node

    def setwise(self) -> Node:
        node = self.sum()
        while True:
            if self.accept("∪") or self.written_union():
                right = self.sum()
                node = Node("union", (*node.args, right) if node.op == "union" else (node, right))
            elif self.accept("∩"):
                node = Node("inter", (node, self.sum()))
            elif self.accept("∖"):
                node = Node("minus", (node, self.sum()))
            else:
                return node

    def written_union(self) -> bool:
        """The letter U between two intervals."""
        token, before, after = self.peek(), self.peek(-1), self.peek(1)
        if token.kind == "sym" and token.text in "Uu" and before.text in (")", "]", "rset") and after.text in ("(", "[", "lset"):
            self.at += 1
            return True
        return False

    # --- sums and products ---
    def sum(self) -> Node:
        self.deeper()
        terms: list[Node] = []
        if self.accept("-"):
            terms.append(neg(self.product()))
        elif self.accept("±"):
            terms.append(Node("pm", (num(0), self.product())))
        elif self.accept("∓"):
            terms.append(Node("mp", (num(0), self.product())))
        else:
            self.accept("+")
            terms.append(self.product())
        while self.peek().kind == "op":
            if self.accept("+"):
                terms.append(self.product())
            elif self.accept("-"):
                right = self.product()
                if right.op in SETS or terms[-1].op in SETS:
                    terms[-1] = Node("minus", (terms[-1], right))
                else:
                    terms.append(neg(right))
            elif self.is_op("±", "∓"):
                op = "pm" if self.take().text == "±" else "mp"
                left = terms[0] if len(terms) == 1 else Node("add", tuple(terms))
                terms = [Node(op, (left, self.product()))]
            else:
                break
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def product(self) -> Node:
        node = self.signed_power()
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.at += 1
                node = _times(node, self.signed_power())
            elif token.kind == "op" and token.text == "/":
                self.at += 1
                node = Node("div", (node, self.signed_power()))
            elif token.kind == "op" and token.text in ("mod", "pmod"):
                self.at += 1
                node = Node("fn", ("mod", node, self.signed_power()))
            elif token.kind == "op" and token.text == "(" and self.congruence():
                continue
            elif self.starts_atom():
                before = self.peek(-1)
                if token.kind == "num" and before.kind == "num":
                    node = self.spaced_mixed(node)
                    continue
                node = self.juxtaposed(node, self.power(), mixed=before.kind == "num" and token.text == "frac")
            else:
                return node

    def congruence(self) -> bool:
        """Skip "(mod 7)"."""
        if self.peek(1).text == "mod" and self.peek(1).kind == "op":
            while self.at < len(self.tokens) and not self.accept(")"):
                self.at += 1
            return True
        return False

    def signed_power(self) -> Node:
        if self.accept("-"):
            return neg(self.signed_power_of())
        if self.accept("+"):
            return self.signed_power_of()
        if self.is_op("±", "∓"):
            op = "pm" if self.take().text == "±" else "mp"
            return Node(op, (num(0), self.power()))
        return self.power()

    def signed_power_of(self) -> Node:
        self.deeper()
        node = self.signed_power()
        self.depth -= 1
        return node

    def spaced_mixed(self, whole: Node) -> Node:
        """`7 3/11`: an integer, a space, a proper fraction."""
        top = self.take()
        if (
            whole.op == "num" and whole.args[1] == -1 and top.spaced and top.value is not None
            and self.is_op("/") and self.peek(1).kind == "num" and not self.peek().spaced
        ):  # fmt: skip
            self.at += 1
            bottom = self.take()
            if bottom.value and top.value < bottom.value and top.value.denominator == bottom.value.denominator == 1:
                return num(whole.args[0] + top.value / bottom.value)
        raise Unreadable("two numbers side by side")

    def juxtaposed(self, left: Node, right: Node, *, mixed: bool) -> Node:
        """A product; an integer literal before a proper fraction is a mixed number."""
        if mixed and right.op == "div" and left.op == "num" and left.args[1] == -1:
            top, bottom = right.args
            if top.op == bottom.op == "num" and top.args[1] == bottom.args[1] == -1 and 0 < top.args[0] < bottom.args[0]:
                return num(left.args[0] + top.args[0] / bottom.args[0])
        return _times(left, right)

    def starts_atom(self) -> bool:
        token = self.peek()
        if token.kind in ("num", "sym", "cmd", "begin"):
            return True
        if token.kind == "text":
            return not token.text.lower().startswith(_QUALIFIERS)
        if token.kind == "op":
            if token.text == "|":
                return self.bars == 0 and self.peek(1).kind in ("num", "sym", "cmd") and self.closing_bar()
            return token.text in ("(", "[", "{", "lset", "lfloor", "lceil", "∅", "…")
        return False

    def closing_bar(self) -> bool:
        return any(token.kind == "op" and token.text == "|" for token in self.tokens[self.at + 1 : self.at + 40])

    # --- powers and what stands behind an atom ---
    def power(self) -> Node:
        self.deeper()
        node = self.postfix(self.atom())
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node:
        while True:
            token = self.peek()
            if token.kind == "text" and not token.text.lower().startswith(_QUALIFIERS) and node.op != "text":
                node = self.unit(node)
            elif token.kind == "text" and node.op == "text":
                self.at += 1
                node = Node("text", (f"{node.args[0]} {token.text}",))
            elif token.kind != "op":
                return node
            elif token.text == "^":
                self.at += 1
                node = self.raised(node)
            elif token.text == "_":
                self.at += 1
                node = self.subscripted(node)
            elif token.text == "!" :
                self.at += 1
                node = Node("fn", ("factorial", node))
            elif token.text == "°":
                self.at += 1
                node = Node("deg", (node,))
                if self.peek().kind == "sym" and self.peek().text in "CF" and not self.starts_function():
                    self.at += 1
            elif token.text == "%":
                self.at += 1
                node = Node("pct", (node,))
            elif token.text == "'":
                self.at += 1
                node = sym(f"{node.args[0]}'") if node.op == "sym" else Node("fn", ("prime", node))
            else:
                return node

    def starts_function(self) -> bool:
        return self.peek(1).kind == "op" and self.peek(1).text in ("(", "_", "^")

    def unit(self, node: Node) -> Node:
        words = [self.take().text]
        while True:
            if self.accept("^"):
                exponent = self.argument()
                value = exponent.args[0] if exponent.op == "num" else None
                if value is None or value.denominator != 1:
                    return Node("quantity", (node, words[0]))  # 12^{\text{th}} and the like
                words.append(f"^{value}")
            elif self.peek().kind == "text" and not self.peek().text.lower().startswith(_QUALIFIERS):
                words.append(" " + self.take().text)
            elif self.is_op("/", "*") and self.peek(1).kind == "text":
                words.append(self.take().text + self.take().text)
            else:
                break
        joined = "".join(words)
        lower = joined.lower().strip(" .")
        if lower in ("percent", "percentage", "pct", "per cent", "percents"):
            return Node("pct", (node,))
        if lower in ("degrees", "degree", "度"):
            return Node("deg", (node,))
        if lower in ("th", "st", "nd", "rd"):
            return node
        if node.op == "quantity":
            return Node("quantity", (node.args[0], f"{node.args[1]} {joined}"))
        return Node("quantity", (node, joined.strip()))

    def raised(self, base: Node) -> Node:
        if self.accept("°"):
            node = Node("deg", (base,))
            if self.peek().kind == "sym" and self.peek().text in "CF" and not self.starts_function():
                self.at += 1
            return node
        if self.is_op("'"):
            primes = 0
            while self.accept("'"):
                primes += 1
            return sym(f"{base.args[0]}" + "'" * primes) if base.op == "sym" else Node("fn", ("prime", base))
        exponent = self.argument(whole_number=True)
        if exponent.op == "degree sign":
            node = Node("deg", (base,))
            if self.peek().kind == "sym" and self.peek().text in "CF" and not self.starts_function():
                self.at += 1
            return node
        if exponent.op == "prime sign":
            return sym(f"{base.args[0]}'") if base.op == "sym" else Node("fn", ("prime", base))
        if exponent.op == "text":
            if exponent.args[0].lower() in ("th", "st", "nd", "rd"):
                return base
            return Node("quantity", (base, exponent.args[0]))
        if base.op == "fn" and len(base.args) == 1:
            return Node("fn", (base.args[0], exponent))
        return Node("pow", (base, exponent))

    def subscripted(self, base: Node) -> Node:
        start = self.at
        index = self.argument(whole_number=True)
        if base.op in ("num", "digits") or (base.op == "quantity" and base.args[0].op == "num"):
            before = self.tokens[start - 2]
            if index.op == "num" and index.args[0].denominator == 1 and before.kind == "num":
                return Node("base", (before.text, int(index.args[0])))
            raise Unreadable("a subscript of a number that is no base")
        label = "".join(token.text for token in self.tokens[start : self.at] if token.text not in ("{", "}"))
        if base.op == "sym":
            return sym(f"{base.args[0]}_{label}")
        if base.op == "text":
            return Node("text", (f"{base.args[0]}_{label}",))
        raise Unreadable("a subscript")

    # --- atoms ---
    def atom(self) -> Node:
        token = self.take()
        if token.kind == "num":
            if self.peek().kind == "sym" and self.is_digit_run():
                return self.long_digits(token)
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
            return self.bracketed(token.text)
        raise Unreadable(f"unexpected {token.text!r}")

    def words(self, token: Token) -> Node:
        text = token.text
        if len(text) == 1 and text.isascii():
            return self.symbol(token)
        if text.lower() in ("dollar", "euro", "sterling", "yuan"):
            value = self.postfix(self.atom()) if self.starts_atom() else None
            if value is None:
                raise Unreadable("a currency sign alone")
            if value.op == "quantity":
                return value
            return Node("quantity", (value, text))
        if text.lower() in _HEDGES and (self.starts_atom() or self.is_op("-", "+")):
            return self.signed_power()
        return Node("text", (text,))

    def is_digit_run(self) -> bool:
        """`1A3_{16}`: letters and digits that end in a base."""
        place = self.at
        while place < len(self.tokens):
            token = self.tokens[place]
            if token.spaced or token.kind not in ("num", "sym") or len(token.text) > 12:
                break
            if token.kind == "sym" and not (len(token.text) == 1 and token.text.isupper()):
                return False
            place += 1
        after = self.tokens[place : place + 1]
        return bool(after) and after[0].kind == "op" and after[0].text == "_"

    def long_digits(self, first: Token) -> Node:
        digits = first.text
        while self.peek().kind in ("num", "sym"):
            digits += self.take().text
        self.expect("_")
        base = self.argument(whole_number=True)
        if base.op != "num" or base.args[0].denominator != 1:
            raise Unreadable("a base")
        return Node("base", (digits, int(base.args[0])))

    def symbol(self, token: Token) -> Node:
        name = token.text
        if name == "i" and not self.is_op("_"):
            return I
        if name == "e" and not self.is_op("_"):
            return E
        if token.kind == "sym" and name.isupper() and (self.peek().kind == "num" or name in "ABCDEF") and self.is_digit_run():
            return self.long_digits(token)
        if name in ("C", "A", "P") and (node := self.combinations(name)) is not None:
            return node
        if self.is_op("(") and not self.peek().spaced and self.applied(name):
            self.at += 1
            arguments = self.answer()
            self.expect(")")
            return Node("apply", (name, arguments))
        return sym(name)

    def applied(self, name: str) -> bool:
        """`f(x)` applies a function; so does any letter before a bracket that holds one number, as in `I(0)`."""
        if name in ("f", "g", "h"):
            return not (self.peek(1).kind == "sym" and self.peek(1).text == name)
        return self.peek(1).kind == "num" and self.peek(2).text == ")" and name not in ("x", "y", "z")

    def combinations(self, name: str) -> Node | None:
        r"""`C_{10}^{3}`, `C(10,3)`: combinations; `A`, `P`: arrangements."""
        start = self.at
        node: Node | None = None
        if self.accept("_"):
            below = self.argument(whole_number=True)
            above = self.argument(whole_number=True) if self.accept("^") else None
            if above is not None and below.op == above.op == "num":
                node = Node("fn", ("binom" if name == "C" else "arrangements", below, above))
        elif name == "C" and self.is_op("(") and self.peek(2).text == "," and self.peek(4).text == ")":
            if self.peek(1).kind == self.peek(3).kind == "num":
                upper, lower = self.peek(1).value, self.peek(3).value
                assert upper is not None and lower is not None
                self.at += 5
                node = Node("fn", ("binom", num(upper), num(lower)))
        if node is None:
            self.at = start
        return node

    def bracketed(self, sign: str) -> Node:
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
        self.deeper()
        bars, self.bars = self.bars, 0
        if self.accept(")", "]"):
            raise Unreadable("empty brackets")
        node = self.answer()
        self.bars = bars
        trailing = self.peek(-1).text == ","
        closer = self.take().text
        if closer not in (")", "]"):
            raise Unreadable("an open bracket")
        self.depth -= 1
        if node.op != "list":
            if trailing:
                return Node("tuple", (node,))
            return node
        items = node.args
        if sign == "(" and closer == ")":
            return Node("tuple", items)
        if len(items) == 2 and (sign, closer) != ("[", "]"):
            return Node("interval", (items[0], items[1], sign == "[", closer == "]"))
        if (sign, closer) == ("[", "]"):
            return Node("bracket", items)
        raise Unreadable("brackets of two kinds")

    def group(self) -> Node:
        """Braces of LaTeX. With commas inside they were meant as a set."""
        self.deeper()
        if self.accept("}"):
            return self.atom() if self.starts_atom() else Node("empty", ())
        if self.is_op("°") and self.peek(1).text == "}":
            self.at += 2
            self.depth -= 1
            return Node("degree sign", ())
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
        self.deeper()
        bars, self.bars = self.bars, 1
        if self.accept("rset"):
            self.bars = bars
            self.depth -= 1
            return Node("set", ())
        start = self.at
        node = self.answer()
        if self.is_op("|"):
            node = self.condition(node, "rset")
        elif node.op == "ratio" and len(node.args) == 2 and node.args[1].op in ("rel", "member"):
            node = Node("builder", (node.args[0], node.args[1]))
            self.expect("rset")
        elif node.op == "rel" and any(token.text == ":" for token in self.tokens[start : self.at]):
            node = self.builder_of_colon(node)
            self.expect("rset")
        else:
            node = Node("set", node.args if node.op == "list" else (node,))
            self.expect("rset")
        self.bars = bars
        self.depth -= 1
        return node

    def builder_of_colon(self, node: Node) -> Node:
        operands, signs = node.args
        first = operands[0]
        if first.op == "ratio" and len(first.args) == 2:
            return Node("builder", (first.args[0], Node("rel", ((first.args[1], *operands[1:]), signs))))
        if first.op == "sym" and signs == ("=",):
            return Node("builder", (first, operands[1]))
        return Node("set", (node,))

    def condition(self, variable: Node, closer: str) -> Node:
        self.expect("|")
        condition = self.answer()
        self.expect(closer)
        if variable.op == "member":
            variable = variable.args[0]
        return Node("builder", (variable, condition))

    # --- commands ---
    def argument(self, whole_number: bool = False) -> Node:
        """A group in braces, or one sign; of a number without braces the first digit, unless `whole_number`."""
        self.deeper()
        token = self.peek()
        if token.kind == "op" and token.text == "{":
            self.at += 1
            node = self.group()
        elif token.kind == "op" and token.text == "-":
            self.at += 1
            node = neg(self.argument(whole_number))
        elif token.kind == "op" and token.text == "+":
            self.at += 1
            node = self.argument(whole_number)
        elif token.kind == "op" and token.text == "*":
            self.at += 1
            node = sym("*")
        elif token.kind == "num" and not whole_number and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.at] = Token("num", token.text[1:], Fraction(int(token.text[1:])), False)
            node = num(int(token.text[0]))
        elif token.kind == "text":
            self.at += 1
            node = Node("text", (token.text,)) if len(token.text) > 1 else sym(token.text)
        else:
            node = self.atom()
            while whole_number and self.is_op("!"):
                self.at += 1
                node = Node("fn", ("factorial", node))
            if whole_number and self.accept("^"):  # a tower without braces: 9^9^9
                node = Node("pow", (node, self.argument(whole_number=True)))
        self.depth -= 1
        return node

    def command(self, name: str) -> Node:
        if name == "frac":
            return self.fraction()
        if name in ("sqrt", "cbrt"):
            return self.root(name)
        if name == "pi":
            return PI
        if name == "inf":
            return INFINITY
        if name == "nan":
            return Node("const", ("nan",))
        if name == "binom":
            if self.is_op("("):
                return self.call(name)
            return Node("fn", ("binom", self.argument(), self.argument()))
        if name in ("overline", "bar", "dot", "ddot", "mathring", "widebar"):
            inner = self.argument()
            return sym(f"{name} {inner.args[0]}") if inner.op == "sym" else Node("fn", ("bar", inner))
        if name in ("overset", "underset", "stackrel"):
            self.argument()
            return self.argument()
        if name in ("sum", "prod", "lim", "int", "iint", "oint", "iiint"):
            return self.big_operator(name)
        if name in ("tag", "label"):
            self.argument()
            return self.atom()
        if name in ("Eq", "Ne"):
            pair = self.call(name)
            return Node("rel", (pair.args[1:3], ("=" if name == "Eq" else "!=",)))
        if name == "Rational":
            call = self.call(name)
            return Node("div", call.args[1:3])
        return self.function(name)

    def fraction(self) -> Node:
        if self.is_op("("):
            call = self.call("frac")
            if len(call.args) == 3:
                return Node("div", call.args[1:3])
            raise Unreadable("a fraction")
        top, bottom = self.argument(), self.argument()
        if any(part.op in ("empty", "list", "set") for part in (top, bottom)):
            raise Unreadable("a fraction without a part")
        return Node("div", (top, bottom))

    def root(self, name: str) -> Node:
        degree = num(3 if name == "cbrt" else 2)
        if name == "sqrt" and self.is_op("["):
            self.at += 1
            degree = self.setwise()
            self.expect("]")
        radicand = self.argument(whole_number=True)
        return Node("root", (degree, radicand))

    def call(self, name: str) -> Node:
        self.expect("(")
        arguments = self.answer()
        self.expect(")")
        return Node("fn", (name, *(arguments.args if arguments.op == "list" else (arguments,))))

    def function(self, name: str) -> Node:
        base: Node | None = None
        exponent: Node | None = None
        while self.is_op("_", "^"):
            if self.take().text == "_":
                base = self.log_base() if name == "log" else self.argument(whole_number=True)
            else:
                exponent = self.argument(whole_number=True)
        if name in ("max", "min") and base is not None and not self.is_op("("):
            return sym(f"{name}_{_label(base)}")
        if self.is_op("("):
            call = self.call(name)
        elif self.is_op("[", "{"):
            call = Node("fn", (name, self.atom()))
        elif self.starts_atom() or self.is_op("-"):
            call = Node("fn", (name, self.bare_argument()))
        elif exponent is None and base is None:
            return sym(name)
        else:
            raise Unreadable(f"{name} without an argument")
        if base is not None:
            if name == "log":
                call = Node("fn", ("log", call.args[1], base))
            elif name not in ("max", "min"):
                raise Unreadable(f"a subscript of {name}")
        if exponent is not None:
            if exponent.op == "neg" or (exponent.op == "num" and exponent.args[0] == -1):
                call = Node("fn", (f"arc{name}", *call.args[1:]))
            else:
                call = Node("pow", (call, exponent))
        return call

    def log_base(self) -> Node:
        token = self.peek()
        alone = token.kind == "num" and len(token.text) > 1
        after = self.peek(1)
        if alone and after.kind not in ("num", "sym", "cmd") and after.text not in ("(", "{", "|", "[") and token.text != "10":
            return self.argument()
        return self.argument(whole_number=True)

    def bare_argument(self) -> Node:
        r"""What a function without brackets applies to: the factors up to a sign or the next function."""
        if self.accept("-"):
            return neg(self.bare_argument())
        factors = [self.power()]
        while self.starts_atom():
            token = self.peek()
            if token.kind == "op" and token.text in _BARE_ARGUMENT_STOP or token.text == "(" and factors[-1].op != "num":
                break
            if token.kind == "cmd" and token.text not in ("frac", "sqrt", "pi", "inf", "cbrt"):
                break
            if token.kind in ("text", "begin"):
                break
            factors.append(self.power())
        node = factors[0]
        for factor in factors[1:]:
            node = _times(node, factor)
        if self.is_op("/") and self.peek(1).kind == "num" and len(factors) == 1:
            self.at += 1
            node = Node("div", (node, self.power()))
        return node

    def big_operator(self, name: str) -> Node:
        below: Node | None = None
        above: Node | None = None
        while self.is_op("_", "^"):
            if self.take().text == "_":
                below = self.argument(whole_number=True)
            else:
                above = self.argument(whole_number=True)
        body = self.product()
        if name == "lim":
            if below is None or below.op != "rel":
                raise Unreadable("a limit without its point")
            return Node("fn", ("lim", below.args[0][0], below.args[0][1], body))
        if name in ("sum", "prod"):
            if below is None or below.op != "rel" or above is None or below.args[1] != ("=",):
                raise Unreadable(f"a {name} without limits")
            variable, start = below.args[0]
            return Node("fn", (name, variable, start, above, body))
        return Node("fn", (name, *(part for part in (below, above) if part is not None), body))

    # --- matrices ---
    def environment(self, name: str) -> Node:
        self.deeper()
        bars, self.bars = self.bars, 0
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while True:
            if self.peek().kind == "end":
                if self.at >= len(self.tokens):
                    raise Unreadable("an open environment")
                if self.take().text != name:
                    raise Unreadable("environments that cross")
                break
            if self.accept("row"):
                if row:
                    rows.append(tuple(row))
                row = []
            elif self.accept("&"):
                continue
            else:
                row.append(self.answer())
        if row:
            rows.append(tuple(row))
        self.bars = bars
        self.depth -= 1
        if name == "cases":
            return Node("cases", tuple(Node("list", cells) if len(cells) > 1 else cells[0] for cells in rows))
        if name in _MATRICES:
            if not rows or any(len(cells) != len(rows[0]) for cells in rows):
                raise Unreadable("rows of different lengths")
            matrix = Node("matrix", tuple(rows))
            return Node("det", (matrix,)) if name in ("vmatrix", "Vmatrix") else matrix
        if len(rows) == 1 and len(rows[0]) == 1:
            return rows[0][0]
        parts = tuple(cell for cells in rows for cell in cells)
        if not parts:
            raise Unreadable("an empty environment")
        return Node("list", parts)


def _times(left: Node, right: Node) -> Node:
    if left.op == "mul":
        return Node("mul", (*left.args, right))
    return Node("mul", (left, right))


def _label(node: Node) -> str:
    return str(node.args[0]) if node.args and isinstance(node.args[0], str) else node.op
