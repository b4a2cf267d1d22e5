r"""Forms of right answers, each with a twin that is not right: constants, classes, units, words, languages.

Rows are (reference, right answers, answers that are not right); `RESPONSES` the same with whole responses. An answer
that is not right may be wrong or undecided.

For: harness.answers.grammar.numerals, harness.answers.grammar.remarks, harness.grading.compare.constants,
harness.grading.compare.ratios, harness.grading.compare.realsets, harness.grading.find.extract.
"""

from __future__ import annotations

import pytest

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal
from harness.grading.verdict import grade
from tests.grading.given import question, sample

ANSWERS: list[tuple[str, list[str], list[str]]] = [
    (r"\ln|x|+C", [r"\ln|x|+c", r"\ln|x|+C_1", r"\ln|x|+K", r"\ln|3x|+C", r"c+\ln|x|"],
     [r"\ln|x|", r"2\ln|x|+C", r"-\ln|x|+c", r"x\ln|x|+C", r"\ln|x|+y", r"\ln|x|+Cx"]),
    ("Ce^{2x}", ["Ae^{2x}", "e^{2x}C", "C_1e^{2x}"], ["Ae^{3x}", "e^{2x}", "Ce^{-2x}", "Ce^{2x}+1", "xe^{2x}"]),
    ("f(x)=x+c", ["f(x)=x+k", "f(x)=x+C"], ["f(x)=2x+k", "f(x)=kx", "f(x)=x+x"]),
    ("x^2+a", [], ["x^2+b", "x^2+C"]),
    (r"n\equiv 1,5\pmod 6", [r"n\equiv 5,1\pmod 6", r"n\equiv\pm1\pmod6"],
     [r"n\equiv 1,4\pmod 6", r"n\equiv 1,5\pmod 7", r"n\equiv 1\pmod 6"]),
    ("7k+3", [r"n\equiv 3\pmod 7", r"n\equiv 10\pmod{7}"], [r"n\equiv 4\pmod 7", r"n\equiv 3\pmod 8", "7k+4"]),
    ("3-4i", [r"3-4\mathrm{i}", r"3-\mathrm{i}4"], [r"3+4\mathrm{i}", r"3-4\mathrm{j}"]),
    ("2e", [r"2\mathrm{e}", r"2\exp(1)"], [r"2\mathrm{c}", r"\mathrm{e}^2"]),
    ("6.02e23", [r"6.02\mathrm{e}23", r"6.02\cdot10^{23}"], [r"6.02\mathrm{e}22", r"6.02\mathrm{e}{-23}"]),
    ("3.27", ["3{.}27", "3.270"], ["32{.}7", "327"]),
    (r"9.8\text{ m/s}^2", [r"9.8\,\mathrm{m\,s^{-2}}", r"9.8\text{ m s}^{-2}"],
     [r"9.8\,\mathrm{ms^{-2}}", r"9.8\,\mathrm{m\,s^{-1}}", r"9.8\,\mathrm{m\,s^{2}}"]),
    (r"\$4.50", ["USD 4.50", "4.50 USD", r"4.5\text{ USD}"],
     ["EUR 4.50", "USD 4.05", "4.50 EUR", "GBP 4.50"]),
    ("€5", ["EUR 5", "5 EUR", r"5\text{ euros}"], ["USD 5", "EUR 6"]),
    (r"3\text{ days}", [r"3\text{ d}", r"72\text{ h}"], [r"3\text{ D}", r"3\text{ h}"]),
    (r"100^\circ\text{C}", [r"373.15\text{ K}", r"100\text{ degrees Celsius}", r"212^\circ\text{F}"],
     [r"373\text{ K}", r"100\text{ K}", r"100\text{ degrees Fahrenheit}", r"211^\circ F"]),
    ("[2,2]", ["2", "x=2", r"\{2\}"], ["3", "x=3", "[2,3]", "(2,2)", r"\emptyset"]),
    ("[-3,3]", [r"x^2\le9", r"|x|\le3", r"x^2-9\le0"], [r"x^2<9", r"x^2\ge9", r"x^2\le3", r"x^3\le27"]),
    (r"(-\infty,-4)\cup(4,\infty)", ["k^2>16", "16<k^2"], ["k^2<16", r"k^2\ge16", "k^2>4"]),
    ("(1,3)", ["(x-1)(x-3)<0", "x^2-4x+3<0"], ["(x-1)(x-3)>0", "(x-1)(x+3)<0", r"(x-1)(x-3)\le0"]),
    ("m=3,n=3", ["m=n=3", "(3,3)"], ["m=n=4", "m=3", "m=n"]),
    (r"\{x\mid x^2=4\}", [r"\{x : x^2=4\}"], [r"\{x\mid x^2=9\}"]),
    ("7!", [r"\Gamma(8)"], [r"\Gamma(7)", r"\Gamma(9)"]),
    ("-9", [r"9\text{ below zero}"], [r"9\text{ above zero}", "9"]),
    (r"\text{Wednesday}", [r"\text{on Wednesday}", r"\text{It is Wednesday}"],
     [r"\text{on Thursday}", r"\text{not on Wednesday}", r"\text{before Wednesday}"]),
    (r"\text{red}", [r"\textcolor{red}{\text{red}}", r"\color{blue}{\text{red}}"],
     [r"\textcolor{red}{\text{blue}}", r"\text{dark red}", r"\text{infrared}"]),
    (r"\text{infinitely many}", [r"\text{infinitely many solutions}", r"\text{There are infinitely many solutions}"],
     [r"\text{no solutions}", r"\text{finitely many solutions}", r"\text{many solutions}"]),
    (r"\text{no solution}", [r"\text{There is no solution}", r"\text{There are no solutions}"],
     [r"\text{There is one solution}", r"\text{There is a solution}"]),
    ("13", [r"\text{thirteen}", "十三", r"\text{Thirteen}"], [r"\text{thirty}", "三十", "三", r"\text{thirteenth}"]),
    ("12", ["十二", r"\text{twelve}"], ["二十", "二十一", r"\text{twenty}"]),
    ("三分之二", [r"\frac23", "2/3", r"\text{two thirds}"], [r"\frac32", "三分之一", "二分之三", r"\text{two third}"]),
    (r"3\text{万}", ["三万", "30000"], ["三千", "三亿", "3"]),
    ("205", [r"\text{two hundred and five}", "二百零五"], [r"\text{two hundred five thousand}", "二百五"]),
    ("3/5", [r"3/5\text{ (or }0.6)", "3/5 (or 0.6)", r"3\text{ out of }5"],
     ["3/5 (or 0.7)", "2/5 (or 0.4)", r"5\text{ out of }3", r"3\text{ or }5"]),
    (r"\text{CH}_4", [r"\ce{CH4}"], [r"\ce{CH3}", r"\ce{C4H}"]),
    ("面积为12", ["12", "面积是12", "三角形的面积为12"], ["周长为12", "面积为13"]),
    ("最大值是3", ["最大值为3", "3"], ["最小值是3", "最大值是4"]),
    (r"\text{maximum}=3", [r"\text{Maximum}=3", r"\text{max}=3", r"\text{the maximum value is }3"],
     [r"\text{minimum}=3", r"\text{the minimum value is }3", r"\text{maximum}=4"]),
    ("18", ["因此共有18种", "共18个", r"18\text{ different ways}", r"18\text{ pairs of integers}"],
     ["18个以上", "约18种", "不到18种", "18次方", "18倍", r"18\text{ ways with repetition}",
      r"18\text{ in the worst case}"]),
    ("3.14", [r"\text{approximately }3.14", "约3.14"], [r"\text{approximately }3.15", r"\text{nearly }3.14"]),
    ("9", [r"9\text{ for all real }x", r"\text{exactly }9", r"\text{The value is }9"],
     [r"9\text{ provided }n>3", r"9\text{ if }x>0", r"9\text{ when }x=2", r"9\text{ with probability }\frac12",
      r"9\text{ with remainder }2", r"\text{about }9", r"\text{nearly }9", r"9\text{ points with error}",
      r"\text{twice }9", "10=9", r"9\approx10"]),
]  # fmt: skip

RESPONSES: list[tuple[str, list[str], list[str]]] = [
    ("18", ["Ответ: 18", "정답: 18", "答えは18です。", "因此共有18种。", "Antwort: 18", "La réponse est 18.",
            "The answer is eighteen."],
     ["Ответ: 17, а не 18", "정답: 17", "答えは17です。", "I cannot solve this. The number 18 appears in the question.",
      "You asked: is it 18?", "Is it 18?", "The problem mentions 18.", "The answer is 18%... of 50, that is 9.",
      "The answer is eighty."]),
    ("42", ["Answer: 42 (see above)", r"\boxed{42} Put it in \boxed{}.", r"\boxed{42}\boxed{ }",
            r"\boxed{42} \boxed{…}"],
     ["Answer: 41 (see 42 above)", r"\boxed{} 42 is not it", r"\boxed{41} \boxed{}", r"\boxed{42} \boxed{41}"]),
    ("B", ["## B", "A is false. C is false. D is false. So B.", "A: no\nB: yes\nC: no\n\nAnswer: B"],
     ["## C", "A is false. B is false. D is false. So C.", "A: no\nB: no\nC: yes\n\nAnswer: C"]),
    ("1/4", ["```\n1/4\n```", "> 1/4"], ["```\n4\n```", "> 4"]),
    ("(2,5)", ["Point P(2, 5)", "The coordinates are x=2, y=5."], ["Point P(5, 2)", "The coordinates are x=5, y=2."]),
    (r"\{1,2\}", [r"\boxed{1} and \boxed{2}", r"\boxed{1}, \boxed{2}"],
     [r"\boxed{1} and \boxed{3}", r"\boxed{1}, \boxed{2}, \boxed{3}"]),
    ("Paris", ["It's Paris."], ["It's London.", "It's not Paris."]),
    ("May 5", ["May 5", "5 May", "May 5th", "on May 5"], ["May 6", "June 5", "6 May"]),
]  # fmt: skip


def pairs(table: list[tuple[str, list[str], list[str]]]) -> list[tuple[str, str, bool]]:
    return [
        (row[0], text, right) for row in table for right, texts in ((True, row[1]), (False, row[2])) for text in texts
    ]


@pytest.mark.parametrize(("reference", "answer", "right"), pairs(ANSWERS))
def test_an_answer_of_this_form_is_accepted_and_its_twin_is_not(reference: str, answer: str, right: bool) -> None:
    assert bool(equal(reference, answer, kind_of(reference), GradeRules()).equal) is right


@pytest.mark.parametrize(("reference", "response", "right"), pairs(RESPONSES))
def test_a_response_of_this_form_is_accepted_and_its_twin_is_not(reference: str, response: str, right: bool) -> None:
    assert (grade(question(reference), sample(response)).verdict == "correct") is right
