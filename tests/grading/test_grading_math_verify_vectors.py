"""The grader beside Math-Verify's own tests: what it calls the same and what it does not.

Restated from the facts of `tests/` in Math-Verify (MIT, 5d148cf): a reference, a reply, whether they are the same.
There a reply may be a bare formula; here "The answer is" stands before it, since a bare formula in the middle of a text
is no answer. Long replies are left out. What is judged otherwise on purpose stands in `ON_PURPOSE` with its reason.

For: harness.grading.verdict, harness.grading.compare, harness.grading.find.
"""

from __future__ import annotations

import pytest

from harness.grading.verdict import grade
from tests.grading.given import question, sample

SAME_VERDICT = [
    # number extraction
    ("-5", "The answer is -5", True),
    ("7425000", "The answer is 7,425,000", True),
    ("1000", "The answer is 1 000", True),
    ("1000", "The answer is 1000.0", True),
    ("1000.0", "The answer is 1,000.0", True),
    ("0.4", "The answer is .4", True),
    ("1000.99", "The answer is 1,000.99", True),
    ("1000.99", "The answer is $1,000.99", True),
    ("1000.99", "The answer is 1,000.99$", True),
    ("2", "The answer is AZYUK2A", False),
    # simple fraction notation
    ("10/9", r"The answer is \frac{10}{9}", True),
    ("-10/9", r"The answer is -\frac{10}{9}", True),
    # sets handling
    ("[0,1)", "The answer is $[0,1)$", True),
    ("[0,9)", "The answer is $[0,1)$", False),
    ("(0,9)", "The answer is $[0,9)$", False),
    ("1", "The answer is $-[0,1)$", False),
    # latex notation
    ("9", r"The answer is Answer \[ 9 \]", True),
    ("9", "The answer is Answer $ 9 $", True),
    ("9", "The answer is Answer $$ 9 $$", True),
    ("9", r"The answer is Answer \( 9 \)", True),
    ("10", r"The answer is Answer \( (9+1) \)", True),
    ("1/3", r"The answer is $\frac13 $", True),
    ("1", r"The answer is $\frac3{3} $", True),
    (r"\sqrt{3}", r"The answer is $\sqrt3 $", True),
    ("1/3", r"The answer is $\cfrac{1}{3} $", True),
    ("1/3", r"The answer is $\dfrac{1}{3} $", True),
    ("1/3", r"The answer is $\tfrac{1}{3} $", True),
    ("1/3", "The answer is $ 1/3 $", True),
    ("1/3", r"The answer is $\left( \frac{1}{3} \right)$", True),
    ("1/3", r"$\boxed{\frac{1}{3}}$", True),
    ("1/3", r"The answer is $\frac{1}{3} \text{meters}$", True),
    ("1/3", r"The answer is $\frac{1}{3} \textbf{meters}$", True),
    ("1/3", r"The answer is $k = \frac{1}{3}$", True),
    # percent notation
    (r"28\%", "The answer is 28 percent", True),
    (r"28\%", "The answer is 28 pct", True),
    (r"28\%", "The answer is 28 %", True),
    (r"28\%", "The answer is $28$ %", True),
    (r"28\%", "The answer is $28$ percent", True),
    (r"28\%", r"$\boxed{28}$ pct", True),
    (r"28\%", r"$\boxed{28 pct}", True),
    (r"28\%", r"$\boxed{28 percent}", True),
    (r"28\%", r"$\boxed{28 percentage}", True),
    # latex notation math
    ("2-2p", r"Since $x<2$, it follows that $|x-2|=2-x$. If $2-x=p$, then $x=2-p$. Thus $x-p=\boxed{2-2p}$.", True),
    (r"\sqrt{2}+\sqrt{5}", r"The answer is $\boxed{\sqrt 2+\sqrt 5}$", True),
    (r"\frac{9}{4}\pi", r"Therefore $\boxed{\frac94\pi}$.", True),
    # relations math
    ("x >= 5", r"Therefore $x \geq 5$ is the solution.", True),
    ("x < 3", r"We find that $x \lt 3$.", True),
    (r"x \leq 2", "Thus $x <= 2$ is our answer.", True),
    ("x > 5", r"Therefore $x \gt 5$ is the solution.", True),
    ("x != 3", r"We find that $x \neq 3$.", True),
    ("x > 5", "Therefore $x < 5$ is the solution.", False),
    (r"x \geq 5", r"The solution is $x \leq 5$", False),
    (r"x \neq 5", "The solution is $x != 5$", True),
    (r"x \leq 5", r"The answer is $5 \geq x$", True),
    (r"x \geq 5", r"The answer is $5 \leq x$", True),
    ("7 = 11a+c", "The answer is $11a+c$", False),
    ("11", "The answer is $x=11$", True),
    ("x < 1", "The answer is $x > -1$", False),
    ("a +3z = 0", "The answer is $0$", False),
    ("2x + z = 1", "The answer is $1$", False),
    ("a^2 + b = 0", "The answer is $0$", False),
    ("k=1", "The answer is $1$", True),
    ("1", "The answer is $k=1$", True),
    ("2x+4y-3=0", r"The answer is $y=-\frac{1}{2}x+\frac{3}{4}$", True),
    ("x^2/4 + y^2/3 = 1", "The answer is $x^2/16 + y^2/12 = 1/4$", True),
    # math extraction additional cases
    ("34", "Final Answer: The largest $n$ is 34.", True),
    ("(3,1)", "The answer is ${1,3}$", False),
    (r"\text{E}", "The answer is $E$", True),
    # sqrt precision
    ("4", r"The answer is $4\sqrt{2}$", False),
    # symbols
    ("ext{13}", "The answer is $13$", False),
    # numina cases
    ("(p,q)=(3,2)", "The answer is $(3,2)$", True),
    ("-12;-11;-10;-8;-7;-6", r"$\boxed{\{-12, -11, -10, -8, -7, -6\}}$", True),
    ("AB=4,CD=5", r"$\boxed{4, 5}$", True),
    ("(11,7)or(7,11)", r"$\boxed{(7,11),\ (11,7)}$", True),
    ("S_{MBCN}:S=7:32", r"$\boxed{7:32}$", True),
    (r"\frac{NO}{BO}=\frac{1}{\sqrt{6}}", r"The answer is $\frac{1}{\sqrt{6}}$", True),
    ("p=5,q=2;p=7,q=2", "The answer is $(5,2),(7,2)$", True),
    ("(p,q,r)=(3,2,7)", "The answer is $(3,2,7)$", True),
    ("V_{1}:V_{2}=11:21", "The answer is $11:21$", True),
    (r"\text{odd}", "The answer is $odd$", True),
    (r"\text{e}", "The answer is $e$", True),
    ("d", r"The answer is $\text{E}$", False),
    ("(p,q)=(3,2)", r"$\boxed{(3, 2)}$", True),
    (r"x = -5,\ p = \frac{14}{3}", r"$\boxed{-5, \frac{14}{3}}$", True),
    (r"a=4,\,-8,\,-10", r"$\boxed{-10,-8,4}$", True),
    (r"6 \text{ and } 8", r"$\boxed{6,8}$", True),
    (r"\text{Even}", "The answer is $Even$", True),
    # open thoughts
    ("f(y) = y", "The answer is $$f(y) = y$$", True),
    ("-793 < a < 10", "The answer is $$(-793, 10)$$", True),
    (r"\text{The midpoints form a regular hexagon}", r"$$\text{The midpoints form a regular hexagon}$$", True),
    ("a_3 = 2, a_{37} = 19", r"$$\boxed{a_{37} = 19, \quad a_3 = 2}$$", True),
    ("(2, 2), (1, 3), (3, 3)", r"$$\boxed{(2, 2), (1, 3), (3, 3)}$$", True),
    (r"(1, +\infty)", r"The answer is $$(1, +\infty)$$", True),
    (r"0.06 \text{ yuan}", r"$$\boxed{0.06 \text{ yuan}}$$", True),
    ("(5, 8), (8, 5)", r"$$\boxed{(x, y) = (5, 8) \quad \text{and} \quad (8, 5)}$$", True),
    ("667", r"$$\boxed{667}$$", True),
    (r"6 \text{ and } 8", r"$$\boxed{6 \text{ and } 8}$$", True),
    ("(2, 2), (6, 2)", r"$$\boxed{(2, 2)} \quad \text{and} \quad \boxed{(6, 2)}$$", True),
    ("(98, 2), (99, 503)", r"$$\boxed{(98, 2)} \quad \text{and} \quad \boxed{(99, 503)}$$", True),
    ("(3, 3), (1, 1)", r"$$\boxed{(3, 3)} \text{ for part (a) and } \boxed{(1, 1)}$$", True),
    (r"k \ge 2", r"$$\boxed{k \ge 2}$$", True),
    ("k = 45, n = 2", r"$$\boxed{k = 45} \quad \text{and} \quad \boxed{n = 2}$$", True),
    ("|AB|=1", "The answer is $$1$$", True),
    ("A:B=1", "The answer is $$1$$", True),
    ("f(x)=1", "The answer is $$1$$", True),
    # string extraction
    ("n=1, 2, 3", "The answer is $n=1, 2, 3$", True),
    ("n=2, 3, 4", "The answer is $n=1, 2, 3$", False),
    ("D = (0, 1)", "The answer is $D = (0, 1)$", True),
    ("D = (0, 1)", "The answer is $D = (0, 1.5)$", False),
    (r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", r"The answer is $F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}$", False),
    (r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", r"The answer is $F_n = \sum_{k=0}^{n-1} F_{n-k-1} F_k$", True),
    ("19, 46, and 82", r"The answer is $19, 46, \text{ and } 82$", True),
    ("19, 46, and 82", "The answer is $21, 36, and 82$", False),
    (r"1 - \frac{1}{\mathrm{e}}", r"The answer is $1 - \frac{1}{\mathrm{e}}$", True),
    (r"\pm 2021", "The answer is $2021$", False),
    (r"\pm 2021", "The answer is ${-2021, 2021}$", True),
    ("12:00", "The answer is $1:00$", False),
    ("12:00", "The answer is $12:00$", True),
    ("{1,2,3}", r"\boxed{1},\boxed{2},\boxed{3}", True),
]  # fmt: skip
"""(reference, reply, whether Math-Verify and we call them the same)."""

ON_PURPOSE = [
    *(
        ("1000.99", sentence, True, "undecided", "no sentence of this form states an answer")
        for sentence in (
            "the number is not 10 which is 1,000.99€",
            "so the number is 10 which is 1,000.99m²",
            "not it's not 10 it's 1,000.99m²",
        )
    ),
    (
        "1000.99", "The answer is 1000,99", True, "undecided",
        "a comma between digits may part two values or be a decimal comma",
    ),
    (
        "1,22", "The answer is 1.22", True, "undecided",
        "as above",
    ),
    (
        "0,111", "The answer is 0.111", True, "undecided",
        "as above",
    ),
    (
        "2.74", "The answer is Soucis : 2,74 $ a..", True, "undecided",
        "as above, among words",
    ),
    (
        "9", "The answer is \\( \n 9 \n \\)", False, "correct",
        "a line break within a formula changes no value",
    ),
    (
        "10/9", r"The answer is $ \frac{1}{2} \$ = \frac{10}{9} $", True, "undecided",
        r"`\$` is a dollar: half a dollar = 10/9 compares nothing",
    ),
    (
        "x = 11", "The answer is $x = 5+5+1 = 7 =11$", True, "wrong",
        "the chain says something false: 7 = 11",
    ),
    (
        "x = 1/3", r"The answer is $x = 5+5+1 = 1/3 \approx 11$", True, "wrong",
        "as above: 11 = 1/3",
    ),
    (
        "1/3", r"The answer is $x=1/3\approx1.3$", True, "wrong",
        "as above: 1/3 is not about 1.3",
    ),
    (
        "z = 1 + 1 = 2", "The answer is $z = 3+3 = 2$", True, "wrong",
        "as above: 6 = 2",
    ),
    (
        r"1 = \zzz = x = 0", "The answer is $0$", True, "undecided",
        "the reference says something false",
    ),
    (
        "(1,3)", "The answer is ${1,3}$", True, "wrong",
        "a pair or an interval is no set of two",
    ),
    (
        "(37,3,3,13),(17,3,3,7),(3,37,3,13),(3,17,3,7),(3,3,2,3)",
        r"$\boxed{(3, 37, 3, 13), (3, 17, 3, 7), (3, 3, 2, 3), (3,17,3,7), (17,3,3,7), (37,3,3,13)}$", True, "wrong",
        "a list with a value written twice is another list; a set in braces is the same set",
    ),
    (
        r"1\leq|z|\leq \frac{3}{2}",
        r"The answer is $z \in \left[-\frac{3}{2}, -1\right] \cup \left[1, \frac{3}{2}\right]$", True, "undecided",
        "z may be complex: nobody said that it is real",
    ),
    (
        "0<f(x)<1", "The answer is $(0,1)$", True, "undecided",
        "bounds of a function are no interval of its variable",
    ),
    (
        r"1 - \frac{1}{\mathrm{e}}", r"The answer is $1 + \frac{1}{\mathrm{e}}$", True, "wrong",
        "they differ; there this stands among known faults",
    ),
    ("11", r"The answer is $x\approx11$", True, "undecided", "a value that is called rough, beside an exact one"),
    ("x < 1", "The answer is $-x > -1$", True, "undecided", "an inequality that is still to be solved"),
    ("x <= 1", "The answer is $-x >= -1$", True, "undecided", "an inequality that is still to be solved"),
]  # fmt: skip
"""(reference, reply, whether Math-Verify calls them the same, our verdict, why)."""


@pytest.mark.parametrize(("reference", "reply", "same"), SAME_VERDICT)
def test_what_math_verify_calls_the_same_is_the_same(reference: str, reply: str, same: bool) -> None:
    assert (grade(question(reference), sample(reply)).verdict == "correct") is same


@pytest.mark.parametrize(("reference", "reply", "same", "ours", "why"), ON_PURPOSE)
def test_what_is_judged_otherwise_is_so_on_purpose(reference: str, reply: str, same: bool, ours: str, why: str) -> None:
    assert grade(question(reference), sample(reply)).verdict == ours
    assert (ours == "correct") is not same, why
