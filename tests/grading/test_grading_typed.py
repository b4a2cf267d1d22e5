"""What pupils type for a sign (v for √, X for x, 小于 for <); a divisor in percent; a judgement with its reason.

For: harness.grading.compare.typed, harness.answers.grammar.characters.
"""

from __future__ import annotations

from itertools import product
from random import Random

from tests.budget import examples
from tests.grading.outcomes import outcome

RIGHT = {
    "√": ("v", "V", "√，因为2是质数"), "×": ("x", "X", r"\boxed{x}", "×，因为9不是质数。"),
    "对": ("v", "对，因为5>3。", r"\boxed{\text{对}（√）}", "对（√）"), "错": ("错（×）", "不对（×）"),
    "√5": ("根号5", r"\boxed{根号5}", "答：斜边长是根号5。"), "2√5": ("2根号5",),
    "300元": ("5000×2%×3=300元", r"\boxed{5000\times2\%\times3=300元}"), "170元": ("200×(1-15%)=170元",),
    "错误": ("x", "X", "错，因为2是质数", "错误的，因为2是质数。"), r"\times": ("x",), "（√）": ("v",),
    "<": ("小于", r"\boxed{小于}", "＜"), ">": ("大于", "2.5>2.05"), "＞": (">", r"\boxed{2.5>2.05}"),
    "=": ("等于", "＝", "0.8=4/5", r"\boxed{0.8=\frac{4}{5}}"), "±5": ("正负5", r"\boxed{正负5}", "正负五"),
    "x=5": ("X=5", r"\boxed{X=5}", "5=X"), "x≥2": ("X≥2",), "x=5，y=2": ("X=5，Y=2", "X=5,Y=2"), "1<x<4": ("1<X<4",),
    "x=2或x=3": ("X=2或X=3",), "200元": ("160÷80%=200元", r"160\div80\%=200元", "160÷80％=200（元）", "160÷80%"),
    "2次": (r"\boxed{2}", "两次", "2 次"), "2": ("2次",), "1/200": ("1/2%",),
}  # fmt: skip
"""Reference → what is typed for it."""

WRONG = {
    "√": ("x", "×", "错，因为9不是质数"), "×": ("v", "对，因为2是质数", "错，因为2是质数，所以对"), "true": ("v", "x"),
    "√5": ("根号6", "根号5+1"), "300元": ("5000×2%×2=300元", "5000×2%×3=310元"), "30元": ("200×15%=30%",),
    "对": ("对（×）", "错（√）", "不对（√）"), "是": ("对（√）",),
    "错": ("小明说错，因为2是质数", "错，因为它是对的", "不对，因为2是质数", "错，因为2是质数。所以这是对的。"),
    "x": ("v", "×", "X"), "<": ("大于", "等于", "2.05>2.5", "2.5<2.05"), "＞": ("2.05<2.5",),
    "=": ("0.8=3/5", "x=3", "0.8>4/5"), "6天": ("1÷1/6=6天", "1÷1/5=6天"), "9": ("6÷2/3=1",),
    "x<5": ("小于",), "5": ("正负5",), "-5": ("正负5",), "±5": ("正负3",),
    "x=5": ("X=6", "Y=5", "X^2=5"), "a=5": ("A=5",), "x=5，y=2": ("X=2，Y=5",), "x≥2": ("X>2", "X≤2"),
    "x=5a": ("X=5a",), "x+X=5": ("X+X=5",), "2元": ("160÷80%=2元", "160÷80%"), "2%": ("160÷80%",),
    "2次": ("3次", "2米", "2倍", "2次方", "2次函数", "2次多", "2小时"), "4": ("2的2次",),
    "2": ("2次方", "2次函数"),
}  # fmt: skip


def test_what_is_typed_for_a_sign_is_read_beside_that_sign_only() -> None:
    for reference, answers in RIGHT.items():
        for answer in answers:
            assert outcome(reference, answer) == "correct", (reference, answer)
    for reference, answers in WRONG.items():
        for answer in answers:
            assert outcome(reference, answer) in ("wrong", "undecided"), (reference, answer)
    signs = [("√", "v"), ("×", "x"), ("<", "小于"), (">", "大于"), ("=", "等于")]
    for (reference, _), (sign, answer) in product(signs, signs):
        assert (outcome(reference, answer) == "correct") == (reference == sign), (reference, answer)
    # Of two signs one is wrong, a relation with its sides exchanged is open, and so is a division by a typed fraction.
    assert [outcome("=", ">"), outcome("＞", "<"), outcome("＞", "＝")] == ["wrong"] * 3
    open_pairs = [("＞", "2.05<2.5"), ("6天", "1÷1/6=6天"), ("9", "6÷2/3=9")]
    assert [outcome(*pair) for pair in open_pairs] == ["undecided"] * 3


def test_an_equation_and_its_solution_on_one_line_are_not_one_product() -> None:
    """Generated: a step and the solution as children write them; right ones are correct, other values never."""
    random = Random(29)
    for _ in range(examples(120)):
        a, value, c = random.randint(2, 9), random.randint(2, 20), random.randint(1, 9)
        step = random.choice([f"{a}x={a * value}", f"{a}x+{c}={a * value + c}", f"x-{c}={value - c}"])
        form = random.choice(["{} x={}", "{}  x = {}", "{}（x={}）", "{}\\ x={}", "{}\nx={}"])
        assert outcome(f"x={value}", form.format(step, value)) == "correct", (step, form)
        assert outcome(f"x={value}", form.format(step, value + 1)) != "correct", (step, form)
    for _ in range(examples(40)):
        p, q = random.sample(range(2, 9), 2)
        step = random.choice([f"(x-{p})(x-{q})=0", f"x-{p}=0或x-{q}=0", f"x²-{p + q}x+{p * q}=0"])
        form = random.choice(["{}，x1={}，x2={}", "{} x1={} x2={}", "{} x={}或x={}"])
        assert outcome(f"x={p}或x={q}", form.format(step, p, q)) in ("correct", "undecided"), (step, form)
        assert outcome(f"x={p}或x={q}", form.format(step, p, q + 1)) != "correct", (step, form)
