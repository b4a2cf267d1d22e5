r"""Answers whose whole spelling is brought to the usual one: rates, units, times, bases, leads; each with wrong twins.

For: harness.answers.grammar.spellings, harness.grading.compare.scalars, harness.answers.words.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

import harness
from harness.answers.grammar.tree import names
from tests.budget import examples, share_of, thinned
from tests.grading.outcomes import outcome

SPELLINGS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("60千米/时", ("每小时60千米", "时速60千米", "每时60千米", "60km/h"), ("每分钟60千米", "每小时60米", "分速60千米")),
    ("5元/千克", ("每千克5元",), ("每千克5角", "每克5元", "每5千克1元")),
    ("每小时60千米", ("60千米/时",), ("60千米/分",)),
    ("30平方米", ("30 m2", "30m2", "30 sq m", "30 m^2"), ("30 m3", "30 m", "30 cm2", "32 m2")),
    ("12立方米", ("12m3", "12 cu m"), ("12m2", "12 sq m")),
    (r"30\text{ cm}^2", ("30 cm2", "30 sq. cm"), ("30 cm3", "302 cm", "30 mm2")),
    (r"\$18.75", (r"\$18\frac34", r"\$18\frac{3}{4}"), (r"\$18\frac14", r"\$\frac{18\cdot3}{4}")),
    (
        "2046_7",
        (r"2046\text{ (base 7)}", r"2046\text{ base }7", "2046 in base 7"),
        (r"2046\text{ (base 8)}", "2047 in base 7"),
    ),
    (r"36^\circ15'", ("36 degrees 15 minutes", r"36\text{ degrees }15\text{ minutes}"), ("36 degrees 51 minutes",)),
    (r"60^\circ", (r"60\text{ deg}", "60 deg"), (r"60\text{ rad}", r"6\text{ deg}")),
    (r"135^\circ", (r"180^\circ-45^\circ",), (r"180^\circ-135^\circ", r"180^\circ-45")),
    (
        r"9:40\text{ a.m.}",
        (r"9\text{:}40\text{ in the morning}",),
        (r"9:40\text{ in the evening}", "9:04 in the morning"),
    ),
    (r"11:05\text{ p.m.}", (r"11:05\text{ at night}",), (r"11:05\text{ in the morning}", "2:05 at night")),
    (r"\frac13", ("one out of three", r"\text{one out of three}"), ("two out of three", "one out of four")),
    (r"x\equiv 1\pmod{2}", (r"x\text{ is odd}",), (r"x\text{ is even}",)),
    ("A=2,B=-1,C=5", (r"A=2\quad B=-1\quad C=5", r"A=2,\quad B=-1,\quad C=5"), (r"A=2\quad B=1\quad C=5",)),
    (
        "14",
        (r"\text{so }14", r"\text{the answer: }\mathbf{14}", r"\text{it is }14"),
        (r"\text{so }41", r"\text{not }14"),
    ),
    ("6", (r"\text{exactly six}", r"\text{it equals }6", "exactly 6"), (r"\text{exactly seven}", r"\text{almost six}")),
    (
        "[-7,7]",
        (r"\{x\in\mathbb{R}:-7\le x\le7\}",),
        (r"\{x\in\mathbb{R}:-7<x\le7\}", r"\{x\in\mathbb{Z}:-7\le x\le7\}"),
    ),
    ("f(x)=0", (r"f(x)\equiv0",), (r"f(x)\equiv1", r"f(x)\equiv0\pmod 2")),
    ("f(x)=x+1", (r"f(x)=x+1\ \forall x\in\mathbb{R}",), (r"f(x)=x-1\ \forall x\in\mathbb{R}",)),
    ("£36", ("36 pounds",), ("36 pence", "36 dollars", "63 pounds")),
    (r"5\text{ lb}", ("5 pounds",), ("£5",)),
    (r"13.6\text{ eV}", (r"13.6\text{ electron volts}", r"13.6\text{ electron-volts}"), (r"13.6\text{ volts}",)),
    (r"24\text{ square units}", (r"24\text{ sq. units}", r"24\text{ units}^2"), (r"24\text{ cubic units}",)),
    (r"\text{first order}", (r"\text{first-order}",), (r"\text{second-order}",)),
    (r"\text{north}", (r"\text{due north}",), (r"\text{due south}", r"\text{north east}")),
    ("充分不必要条件", ("充分不必要",), ("必要不充分", "必要不充分条件", "充要条件")),
)

CHINESE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("星期三", ("周三", "礼拜三", "Wednesday"), ("星期四", "Thursday")),
    ("星期日", ("星期天", "周日"), ("星期一",)),
    ("100摄氏度", ("100℃", "100°C"), ("100℉", "10℃")),
    ("15:30", ("15点30分", "下午3时30分"), ("3:30", "上午3时30分")),
    ("30分钟", ("半小时", "0.5小时"), ("半天",)),
    ("1.5小时", ("一个半小时", "90分钟"), ("半小时", "两个半小时")),
    ("3小时", ("3个小时",), ("3个月",)),
    ("3小时20分", ("三小时二十分", "3个小时20分钟", "200分钟"), ("三小时十二分", "2小时30分")),
    (
        "2024年5月1日",
        ("2024.5.1", "2024/5/1", "2024-05-01", "二〇二四年五月一日", "2024年五月一日"),
        ("2024.1.5", "2024/5/11", "二〇二三年五月一日"),
    ),
    ("5月1日", ("五月一日",), ("五月十一日", "一月五日")),
    ("3.5", ("3又1/2", "3又2分之1"), ("3又1/3",)),
    ("-3.5", ("-3又1/2", "负三又二分之一", "x=-3又1/2"), ("3又1/2", "-2又1/2", "负三又三分之一")),
    ("√13", ("根号13", "根号下13"), ("根号12", "-根号13")),
    ("5-2√6", ("5-2根号6", "5-2根号下6"), ("5-2根号5", "5+2根号6", "5根号6")),
    ("3.2×10^5", ("3.2×10的5次方", "3.2×10的5次幂"), ("3.2×10的6次方", "3.2×10的负5次方")),
    ("AB∥CD", ("AB//CD", r"AB\parallel CD", r"$AB \parallel CD$"), ("AB⊥CD", "AC//BD")),
    ("24cm²", ("6×8÷2=24(cm²)", "24（cm²）", "6×8÷2=24cm²"), ("6×8÷2=24(cm)", "24(cm³)", "25(cm²)")),
    ("36千米", ("12×3=36(km)", "36（km）"), ("12×3=36(m)", "12×3=36(cm)")),
    ("20平方厘米", ("S=ah÷2=8×5÷2=20平方厘米", "8×5÷2=20(cm²)"), ("S=ah÷2=8×5÷2=21平方厘米", "8×5=20平方厘米")),
    ("0.4公顷", ("80×50=4000平方米=0.4公顷",), ("80×50=4000平方米=40公顷", "80×5=4000平方米=0.4公顷")),
    ("28.26平方厘米", ("9π=28.26(平方厘米)", "S=πr²=9π=28.26平方厘米"), ("8π=28.26平方厘米", "9π=28.36平方厘米")),
    ("6", ("2(3)",), ("2(m)",)),
    ("25%", ("25﹪",), ("52﹪",)),
    ("-2ab", ("-2ab",), ("-3ab", "2ab")),
    ("3/8", (), ("3/8（0.5）", "3/8(8/3)")),
    ("25%", ("百分之25",), ("百分之52",)),
    ("\\frac23", ("3分之2",), ("2分之3",)),
    ("1.25元", ("1元2角5分", "1块2毛5分"), ("1元5角2分", "12.5元")),
    ("1.52米", ("1米52", "152厘米"), ("1.052米", "1米25")),
    ("500克", ("1斤",), ("2斤",)),
    ("75折", ("七五折", "7.5折"), ("七折", "57折")),
    ("\\frac12米", ("半米", "50厘米"), ("半千米",)),
    ("3余2", ("3……2", "商3余2", "3\\cdots2"), ("2余3", "3余1")),
    ("大于", ("大于",), ("小于",)),
    ("25\\%", ("百分之二十五", "25%"), ("2.5%",)),
    ("12元", ("十二元",), ("二十元",)),
)


@pytest.mark.parametrize(
    ("reference", "right", "wrong"), [*SPELLINGS, *CHINESE], ids=[row[0] for row in (*SPELLINGS, *CHINESE)]
)
def test_a_spelling_of_its_own_is_read_and_its_twins_are_not_accepted(
    reference: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    for answer in right:
        assert harness.grade(reference, rf"The answer is $\boxed{{{answer}}}$.").outcome == "correct", answer
    for answer in wrong:
        assert harness.grade(reference, rf"The answer is $\boxed{{{answer}}}$.").outcome != "correct", answer


LENGTHS = {"千米": 1000, "米": 1, "厘米": 0.01}
TIMES = {"小时": 3600, "分钟": 60, "秒": 1, "时": 3600}


def test_rates_in_chinese_are_equal_exactly_where_they_say_the_same() -> None:
    chance = random.Random(11)
    for _ in range(400):
        n, m = chance.randrange(1, 90), chance.randrange(1, 90)
        (length, metres), (time, seconds) = chance.choice([*LENGTHS.items()]), chance.choice([*TIMES.items()])
        (other, theirs), (span, theirs_too) = chance.choice([*LENGTHS.items()]), chance.choice([*TIMES.items()])
        reference, answer = f"{n}{length}/{time}", f"每{span}{m if chance.random() < 0.3 else n}{other}"
        said = int("".join(sign for sign in answer if sign.isdigit()))
        same = abs(n * metres / seconds - said * theirs / theirs_too) < 1e-9
        graded = harness.grade(reference, rf"\boxed{{{answer}}}").outcome
        assert graded == ("correct" if same else "wrong"), (reference, answer)
        assert m > 0


def test_a_number_in_a_base_is_equal_in_that_base_alone() -> None:
    chance = random.Random(12)
    for _ in range(300):
        base, other = chance.randrange(3, 10), chance.randrange(3, 10)
        digits = "".join(str(chance.randrange(base)) for _ in range(3)) or "1"
        graded = harness.grade(f"{digits}_{base}", rf"\boxed{{{digits}\text{{ (base {other})}}}}").outcome
        same = base == other or digits.lstrip("0") in {"", *map(str, range(min(base, other)))}
        assert (graded == "correct") == same, (digits, base, other)


@pytest.mark.parametrize(
    ("reference", "reply", "outcome"),
    [
        ("60千米/时", "每小时60千米", "correct"), ("60千米/时", "每小时66千米", "wrong"),
        ("15:30", "下午3点30分", "correct"),
        ("404.8", "2024/5/1", "undecided"), ("2018", "2024-05-01", "undecided"), ("2024/5/1", "2024-05-01", "correct"),
        ("2024年13月1日", "2024.13.1", "undecided"), ("2023年2月29日", "2023.2.29", "undecided"),
        ("12小时", "半天", "undecided"),
    ],
)  # fmt: skip
def test_a_bare_line_and_what_may_be_a_day_or_a_division(reference: str, reply: str, outcome: str) -> None:
    assert harness.grade(reference, reply).outcome == outcome


def test_times_of_the_day_and_lengths_of_time_in_chinese() -> None:
    numerals = "零一二三四五六七八九十"
    chance = random.Random(13)
    for _ in range(200):
        hours, minutes = chance.randrange(1, 11), chance.randrange(1, 11)
        other = chance.choice((minutes, chance.randrange(1, 11)))
        for answer in (f"{numerals[hours]}小时{numerals[other]}分", f"{hours}个小时{other}分钟"):
            graded = harness.grade(f"{hours}小时{minutes}分钟", rf"\boxed{{{answer}}}").outcome
            assert graded == ("correct" if other == minutes else "wrong"), answer
        clock = f"下午{hours}点{other:02}分"
        graded = harness.grade(f"{hours + 12}:{minutes:02}", rf"\boxed{{{clock}}}").outcome
        assert graded == ("correct" if other == minutes else "wrong"), clock
        money = f"{hours}元{minutes % 10}角{other % 10}分"
        graded = harness.grade(f"{hours}.{minutes % 10}{minutes % 10}元", rf"\boxed{{{money}}}").outcome
        assert graded == ("correct" if other % 10 == minutes % 10 else "wrong"), money


def test_times_of_the_clock_in_words() -> None:
    numerals = ["", *"一两三四五六七八九十", "十一", "十二"]
    minutes = {"钟": 0, "整": 0, "一刻": 15, "半": 30, "三刻": 45, "二十分": 20, "五分": 5}
    chance = random.Random(15)
    for _ in range(300):
        hour, other = chance.randrange(1, 13), chance.randrange(1, 13)
        words = chance.choice([*minutes])
        theirs = chance.choice((minutes[words], chance.choice([*minutes.values()])))
        answer = f"{chance.choice((numerals[hour], hour))}点{words}"
        for hours in (hour, other):
            graded = harness.grade(f"{hours}:{theirs:02}", rf"\boxed{{{answer}}}").outcome
            same = (hours, theirs) == (hour, minutes[words])
            assert (graded == "correct") == same, (hours, theirs, answer)
    # 三点五 is 3.5, and 25点半 no time.
    assert harness.grade("3:05", r"\boxed{三点五}").outcome != "correct"
    assert harness.grade("1:30", r"\boxed{25点半}").outcome != "correct"


@pytest.mark.parametrize(
    ("larger", "smaller", "ratio"),
    thinned([
        ("m", "cm", 100), ("kg", "g", 1000), ("L", "mL", 1000), ("h", "min", 60), ("ft", "in", 12), ("km", "m", 1000),
        ("米", "厘米", 100), ("千克", "克", 1000), ("小时", "分钟", 60), (r"\text{ m }", r"\text{ cm}", 100),
    ]),
)  # fmt: skip
def test_two_joined_units_are_one_quantity_in_either_unit(larger: str, smaller: str, ratio: int) -> None:
    chance = random.Random(16)
    for _ in range(examples(40)):
        large, small = chance.randrange(1, 40), chance.randrange(1, ratio)
        gap = chance.choice(("", " "))
        quantity = f"{large}{gap}{larger}{gap}{small}{gap}{smaller}"
        whole = large * ratio + small
        right = {Fraction(whole), Fraction(whole, ratio)}
        values = [*right, Fraction(large), Fraction(small), Fraction(large + small), Fraction(small * ratio + large)]
        values += [Fraction(whole + 1), Fraction(whole, ratio) + 1, Fraction(whole * ratio)]
        for value in values:
            bare = (
                str(value.numerator)
                if value.denominator == 1
                else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
            )
            for reference, answer in ((quantity, bare), (bare, quantity)):
                graded = harness.grade(reference, rf"\boxed{{{answer}}}").outcome
                assert graded == ("correct" if value in right else "wrong"), (reference, answer)
            named = harness.grade(
                quantity,
                rf"\boxed{{{bare}\text{{ {larger} }}}}" if "text" not in larger else rf"\boxed{{{bare}{larger}}}",
            ).outcome
            assert named == ("correct" if value == Fraction(whole, ratio) else "wrong"), (quantity, bare, larger)


@pytest.mark.parametrize("answer", ["2 m 3 km", "2 a 3 b", "3 m 2 h", "2 x 5 y", "2 m 5", "1.5 m 2 m", "3 m 2 n 4 k"])
def test_letters_that_are_no_joined_units_stay_letters(answer: str) -> None:
    for value in ("7", "3002", "302", "2005", "2.05", "3.5"):
        assert harness.grade(value, rf"\boxed{{{answer}}}").outcome != "correct"


def test_days_are_equal_exactly_where_they_are_the_same_day() -> None:
    chance = random.Random(14)
    for _ in range(300):
        year, month, day = chance.randrange(1990, 2030), chance.randrange(1, 13), chance.randrange(1, 29)
        theirs = chance.choice((day, chance.randrange(1, 29)))
        answer = chance.choice(("{}.{}.{}", "{}/{}/{}", "{}-{:02}-{:02}", "{}年{}月{}日")).format(year, month, theirs)
        graded = harness.grade(f"{year}年{month}月{day}日", rf"\boxed{{{answer}}}").outcome
        assert graded == ("correct" if theirs == day else "wrong"), answer


NUMERALS = dict(enumerate("零一二三四五六七八九"))


@pytest.mark.parametrize("unit", ["", "米", "小时", "千克", "倍", "升"])
def test_a_mixed_number_in_chinese_is_read_with_its_unit(unit: str) -> None:
    chance = random.Random(31)
    for _ in range(examples(60)):
        below = chance.randrange(2, 10)
        whole, above = chance.randrange(1, 10), chance.randrange(1, below)
        reference = f"{whole * below + above}/{below}{unit}"
        spellings = [
            f"{whole}又{above}/{below}{unit}",
            f"{whole}又{below}分之{above}{unit}",
            f"{whole}又{NUMERALS[below]}分之{NUMERALS[above]}{unit}",
            f"{NUMERALS[whole]}又{NUMERALS[below]}分之{NUMERALS[above]}{unit}",
        ]
        for spelling in spellings:
            assert harness.grade(reference, rf"\boxed{{{spelling}}}").outcome == "correct", spelling
        for twin in (
            f"{whole + 1}又{above}/{below}{unit}",
            f"{whole}又{above + below}/{below}{unit}",
            f"{whole - 1 or 9}又{above + below}/{below}{unit}",
            f"{whole}又{below}/{above}{unit}",
            f"{whole}又{above}分之{below}{unit}",
            f"{NUMERALS[whole]}又{NUMERALS[below]}分之{NUMERALS[above]}{'吨' if unit else '半'}",
        ):
            assert harness.grade(reference, rf"\boxed{{{twin}}}").outcome != "correct", (reference, twin)


def test_times_as_many_is_a_unit_that_only_a_reference_may_drop() -> None:
    for number in range(2, 60):
        reference = f"{number}倍"
        rights = [f"{number}倍", f"{number}", f"{number}.0倍", f"{number * 100}%", f"{number * 2}/2倍"]
        if number < len(NUMERALS):
            rights += [f"{NUMERALS[number]}倍", NUMERALS[number]]
        for right in rights:
            assert harness.grade(reference, rf"\boxed{{{right}}}").outcome == "correct", (reference, right)
        wrongs = [f"{number + 1}倍", f"{number + 1}", f"1/{number}", f"{number}%", f"{number}米", f"{number}元"]
        for wrong in wrongs:
            assert harness.grade(reference, rf"\boxed{{{wrong}}}").outcome == "wrong", (reference, wrong)
        opens = [f"{number}个", f"多{number}倍", f"{number}倍多", f"{number}倍半", f"{number}倍以上", f"{number}人"]
        for undecided in opens:
            assert harness.grade(reference, rf"\boxed{{{undecided}}}").outcome == "undecided", (reference, undecided)
        # Three times something is no 3, whatever the question was.
        for other in (f"{number}", f"{number}个", f"{number}人"):
            assert harness.grade(other, rf"\boxed{{{number}倍}}").outcome == "undecided"
            assert harness.grade(other, rf"\boxed{{{number}}}倍").outcome == "undecided"


@pytest.mark.parametrize("unit", ["升", "毫升", "平方米", "千米/时", "℃", "个", "㎡"])
def test_a_unit_in_brackets_belongs_to_the_number_before_it(unit: str) -> None:
    for number, other in (("180", "181"), ("-8", "8"), ("2.5", "25"), ("3/4", "4/3"), (r"\frac{3}{4}", r"\frac{4}{3}")):
        for left, right in ("（）", "()"):
            answer = f"{number}{left}{unit}{right}"
            assert harness.grade(f"{number}{unit}", rf"\boxed{{{answer}}}").outcome == "correct", answer
            assert harness.grade(answer, rf"\boxed{{{number}{unit}}}").outcome == "correct", answer
            assert harness.grade(f"{other}{unit}", rf"\boxed{{{answer}}}").outcome == "wrong", answer
            assert harness.grade(f"{number}吨", rf"\boxed{{{answer}}}").outcome != "correct", answer


_DIGITS = "零一二三四五六七八九"
_UNITS = names("元 米 平方厘米 升 千克 小时 天 度 个 人 本 千米/时 元/千克")
_ENGLISH_NUMBERS = (("two", "2"), ("twelve", "12"), ("twenty-five", "25"), ("six hundred four", "604"))
_ENGLISH_UNITS = ("yuan", "cm", "square meters", "hours", "percent", "apples")
_SENTENCES = (
    "答：他花了{}。", "一共有{}。", "所以答案是{}。", "{}", "答：一共{}。", "面积是{}。", "第三个角是{}",
    "\\boxed{{{}}}", "\\boxed{{{}}}\n\n因为这样算。", "答：不是{}。", "占全班的{}。",
    "小明说是{}。", "\\boxed{{{}}}，不对。",
)  # fmt: skip
_ENGLISH_SENTENCES = (
    "The answer is {}.", "So he has {}.", "The area of the square is {}.", "There are {}.", "{}", "So x = {}.",
    "\\boxed{{{}}}", "It is not {}.", "He says it is {}.", "We get {}.",
)  # fmt: skip


def _in_chinese(number: int) -> str:
    """Return a number below 1,000 in Chinese words."""
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    ten = "" if tens == 1 and not hundreds else _DIGITS[tens]
    small = (f"{ten}十" if tens else "") + (_DIGITS[ones] if ones else "")
    if not hundreds:
        return small
    return f"{_DIGITS[hundreds]}百" + ("零" if rest and not tens else "") + small


def _pairs_in_words() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (reference in words, reference in digits, right and wrong values of a reply)."""
    chance = random.Random(16)
    pairs = []
    for unit in ("", *sorted(_UNITS)):
        for number in chance.sample(range(1, 1_000), 8):
            other = number + chance.randrange(1, 9)
            values = (f"{number}{unit}", f"{_in_chinese(number)}{unit}", str(number), f"{other}{unit}")
            pairs.append((f"{_in_chinese(number)}{unit}", f"{number}{unit}", values))
    for top, bottom in ((3, 4), (2, 9), (7, 8)):
        in_words = f"{_DIGITS[bottom]}分之{_DIGITS[top]}"
        pairs.append((in_words, f"{top}/{bottom}", (f"{top}/{bottom}", in_words, f"{bottom}/{top}")))
    for number in (8, 25, 60):
        in_words = f"百分之{_in_chinese(number)}"
        pairs.append((in_words, f"{number}%", (f"{number}%", in_words, f"{number + 1}%", str(number))))
    return pairs


@pytest.mark.parametrize(
    "frame", ["\\boxed{{{}}}", "答案：{}", "答：增长率是{}。", "所以，增长率是{}。", "答：水占{}。", "{}"]
)
def test_a_percentage_in_words_with_a_decimal_point_is_its_digits(frame: str) -> None:
    chance = random.Random(8)
    for _ in range(6):
        whole, tenths = chance.randrange(1, 130), chance.randrange(1, 10)
        digits, in_words = f"{whole}.{tenths}%", f"百分之{_in_chinese(whole)}点{_DIGITS[tenths]}"
        assert harness.grade(digits, frame.format(in_words)).outcome == "correct", in_words
        assert harness.grade(in_words, frame.format(digits)).outcome == "correct", in_words
        point = f"点{_DIGITS[tenths]}"
        for other in (f"百分之{_in_chinese(whole + 1)}{point}", f"百分之零{point}"):
            assert harness.grade(digits, frame.format(other)).outcome == "wrong", (digits, other)
        for other in (
            f"百分之{_in_chinese(whole)}点",
            f"八分之三点{_DIGITS[tenths]}",
            f"{in_words}十",
            f"{in_words}左右",
        ):
            assert harness.grade(digits, frame.format(other)).outcome != "correct", (digits, other)


def test_a_reference_in_words_gets_the_verdicts_of_the_same_reference_in_digits() -> None:
    pairs = [(*pair, _SENTENCES) for pair in _pairs_in_words()]
    for unit in ("", *_ENGLISH_UNITS):
        for words, digits in _ENGLISH_NUMBERS:
            in_words, in_digits = f"{words} {unit}".strip(), f"{digits} {unit}".strip()
            pairs.append((in_words, in_digits, (in_digits, in_words, digits, f"7 {unit}"), _ENGLISH_SENTENCES))
    n_correct, pairs = 0, share_of(pairs)
    for in_words, in_digits, values, sentences in pairs:
        for sentence in sentences:
            for value in values:
                reply = sentence.format(value)
                outcome = harness.grade(in_digits, reply).outcome
                assert harness.grade(in_words, reply).outcome == outcome, (in_words, reply)
                n_correct += outcome == "correct"
    assert n_correct > 2 * len(pairs)


@pytest.mark.parametrize("reference", ["三角形", "七巧板", "一样", "第三", "One Direction", "none", "四边形"])
def test_words_with_a_numeral_that_are_no_number_stay_words(reference: str) -> None:
    assert harness.grade(reference, rf"\boxed{{{reference}}}").outcome == "correct"
    assert harness.grade(reference, r"\boxed{3}").outcome != "correct"


def test_the_unit_at_the_end_of_a_calculation_and_its_twins() -> None:
    made = (
        (
            "70°",
            70,
            ("70度", "70°", "70（度）", r"70^\circ", "70度=70°"),
            ("180-50-{}", "180-(50+{})", "{}+10"),
            60,
            50,
        ),
        ("5℃", 5, ("5度", "5℃", "5摄氏度"), ("-3+{}", "{}-3"), 8, 7),
        ("3.5元", 3, ("3元5角", "3.5元"), ("1.5+{}", "{}+1.5"), 2, 3),
        ("12.5米", 12, ("12米5分米", "12.5米"), ("10+{}", "{}×5"), 2.5, 3.5),
        ("3.5小时", 3, ("3小时30分", "3.5小时"), ("1.5+{}", "7÷{}"), 2, 4),
    )
    for reference, number, results, terms, right, wrong in made:
        for result, term in product(results, terms):
            assert outcome(reference, f"\\boxed{{{term.format(right)}={result}}}") == "correct", (
                reference,
                term,
                result,
            )
            for twin in (
                f"{term.format(wrong)}={result}",
                f"{term.format(right)}={result.replace(str(number), str(number + 1))}",
            ):
                assert outcome(reference, f"\\boxed{{{twin}}}") == "wrong", (reference, twin)
    # 1.57 is 90° in radians, and π/6 is 30°.
    assert outcome("90°", r"\boxed{1.57=90°}") == outcome("30°", r"\boxed{\pi/6=30°}") == "correct"
