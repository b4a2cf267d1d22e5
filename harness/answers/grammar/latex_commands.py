"""The rules for what begins with a name: fractions, roots, functions, sums, matrices; in LaTeX and plain notation."""

from __future__ import annotations

from fractions import Fraction

from harness.answers.grammar.cursor import Cursor, times
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.tokens import MathToken
from harness.answers.grammar.tree import INFINITY, PI, I, Node, names, neg, num, sym, symbols

_CONDITIONAL = ("if", "for", "when", "where", "若", "当")
_MATRICES = names("matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix array smallmatrix")
_BARE_ARGUMENT_STOP = names("+ - ± ∓ * / ) ] } rset , ; | & row ∪ ∩ ∖ : mod rfloor rceil …")


class Commands(Cursor):
    """The rules of the grammar for what begins with a name."""

    def argument(self, whole_number: bool = False) -> Node:
        r"""Parse the argument of a command: a group in braces, or the next token.

        Without braces LaTeX takes only the first digit of a number, as in `\frac12`. whole_number: take all of its
        digits, as writers mean in `x^10`.
        """
        self.enter_rule()
        token = self.peek()
        if token.kind == "op" and token.text == "{":
            self.position += 1
            node = self.group()
        elif token.kind == "op" and token.text == "-":
            self.position += 1
            node = neg(self.argument(whole_number))
        elif token.kind == "op" and token.text == "+":
            self.position += 1
            node = self.argument(whole_number)
        elif token.kind == "op" and token.text == "*":
            self.position += 1
            node = sym("*")  # the set ℤ^*
        elif token.kind == "num" and not whole_number and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.position] = MathToken("num", token.text[1:], Fraction(int(token.text[1:])), False)
            node = num(int(token.text[0]))
        elif token.kind == "text":
            self.position += 1
            node = Node("text", (token.text,)) if len(token.text) > 1 else sym(token.text)
        else:
            node = self.atom()
            while whole_number and self.is_op("!"):
                self.position += 1
                node = Node("fn", ("factorial", node))
        self.depth -= 1
        return node

    def command(self, name: str) -> Node:
        """Parse the arguments of the command `name`, behind which the cursor stands, and return the command's node."""
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
        if name.startswith("directed "):
            first, last = name[-2], name[-1]  # the vector from point A to point B; BA is the opposite of AB
            return sym(name) if first <= last else neg(sym(f"directed {last}{first}"))
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
        r"""Return `\frac{a}{b}`, or `frac(a, b)` of plain notation."""
        if self.is_op("("):
            call = self.call("frac")
            if len(call.args) == 3:
                return Node("div", call.args[1:3])
            raise Unreadable("a fraction without two parts")
        top, bottom = self.argument(), self.argument()
        if any(part.op in ("empty", "list", "set") for part in (top, bottom)):
            raise Unreadable("a fraction without a part")
        if _differentiates(top, bottom):
            raise Unreadable("a derivative that is not worked out")
        return Node("div", (top, bottom))

    def root(self, name: str) -> Node:
        r"""Return `\sqrt{a}`, `\sqrt[n]{a}`, `cbrt(a)`; a root whose degree is no number is a power."""
        degree = num(3 if name == "cbrt" else 2)
        if name == "sqrt" and self.is_op("["):
            self.position += 1
            degree = self.setwise()
            self.expect("]")
        radicand = self.argument(whole_number=True)
        if degree.op != "num":
            return Node("pow", (radicand, Node("div", (num(1), degree))))
        return Node("root", (degree, radicand))

    def call(self, name: str) -> Node:
        """Parse the arguments of the function `name` in round brackets."""
        self.expect("(")
        arguments = self.answer()
        self.expect(")")
        return Node("fn", (name, *(arguments.args if arguments.op == "list" else (arguments,))))

    def function(self, name: str) -> Node:
        r"""Parse the function `name` with its base, exponent and argument: `\log_2 x`, `\sin^2 x`, `max(a, b)`."""
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
        if name in ("max", "min") and base is None and len(call.args) == 2 and _is_function(call.args[1]):
            return sym(f"{name}_{call.args[1].args[0]}")  # `max f` names the largest value of the function f
        if base is not None:
            if name == "log":
                call = Node("fn", ("log", call.args[1], base))
            elif name not in ("max", "min"):
                raise Unreadable(f"a subscript of {name}")
        if name == "cis" and len(call.args) == 2:
            angle = call.args[1]  # cis t is cos t + i sin t
            call = Node("add", (Node("fn", ("cos", angle)), times(I, Node("fn", ("sin", angle)))))
        if exponent is not None:
            if exponent.op == "neg" or (exponent.op == "num" and exponent.args[0] == -1):
                call = Node("fn", (f"arc{name}", *call.args[1:]))
            else:
                call = Node("pow", (call, exponent))
        return call

    def log_base(self) -> Node:
        r"""Parse the base of a logarithm: `\log_{16} 8`, `\log_16 x`.

        If no argument follows a number of several digits, its first digit is the base and the rest the argument:
        `\log_28` is log₂ 8. The 10 of `\log_10` is never split.
        """
        token = self.peek()
        has_more_digits = token.kind == "num" and len(token.text) > 1
        after = self.peek(1)
        if (
            has_more_digits
            and after.kind not in ("num", "sym", "cmd")
            and after.text not in ("(", "{", "|", "[")
            and token.text != "10"
        ):
            return self.argument()
        return self.argument(whole_number=True)

    def bare_argument(self) -> Node:
        """Parse the argument of a function without brackets: the factors up to a sign or the next function."""
        if self.accept("-"):
            return neg(self.bare_argument())
        factors = [self.power()]
        while self.starts_atom():
            token = self.peek()
            if token.kind == "op" and token.text in _BARE_ARGUMENT_STOP:
                break
            # `sin 2(x + 1)` goes on, `sin x (x + 1)` ends before the bracket.
            if token.text == "(" and factors[-1].op != "num":
                break
            if token.kind == "cmd" and token.text not in ("frac", "sqrt", "pi", "inf", "cbrt"):
                break
            if token.kind in ("text", "begin") or (self.integrals and token.text == "d" and self.peek(1).kind == "sym"):
                break
            factors.append(self.power())
        node = factors[0]
        for factor in factors[1:]:
            node = times(node, factor)
        if self.is_op("/") and self.peek(1).kind == "num" and len(factors) == 1:
            self.position += 1
            node = Node("div", (node, self.power()))
        return node

    def big_operator(self, name: str) -> Node:
        """Parse a sum, product, limit or integral with its limits and its body, which is one term."""
        below: Node | None = None
        above: Node | None = None
        while self.is_op("_", "^"):
            if self.take().text == "_":
                below = self.argument(whole_number=True)
            else:
                above = self.argument(whole_number=True)
        self.integrals += name.endswith("int")
        body = self.product()
        self.integrals -= name.endswith("int")
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
        """Parse the rows of an environment: a matrix, cases, or lines, which become a list."""
        self.enter_rule()
        bars, self.bars = self.bars, 0
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while True:
            if self.peek().kind == "end":
                if self.position >= len(self.tokens):
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
                if name == "cases" and row and self.peek().kind == "text" and self.peek().text.lower() in _CONDITIONAL:
                    self.position += 1
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


def _differentiates(top: Node, bottom: Node) -> bool:
    r"""Whether a fraction is an operator without its function: `\frac{d}{dx}`, `\frac{d^2}{dx^2}`."""
    name = top.args[0] if top.op == "pow" else top
    if name not in (sym("d"), sym("partial")):
        return False
    return any(letter.startswith(f"{name.args[0]} ") for letter in symbols(bottom))


def _is_function(node: Node) -> bool:
    """Whether the node is a function: a name, or a name with a letter, f(x); not a value of a function, f(2)."""
    return node.op == "sym" or (node.op == "apply" and node.args[1].op == "sym")


def _label(node: Node) -> str:
    """Return the text of an index as it stands in a name: the S of max_S."""
    return str(node.args[0]) if node.args and isinstance(node.args[0], str) else node.op
