r"""Whole answers that have a spelling of their own, brought to the spelling that the grammar reads.

    每小时60千米, 时速60千米             60千米/时
    30 m2, 12 cm3, 30 sq m              30 m^2, 12 cm^3, 30 square m
    \$18\frac34, $3/4                   18\frac34 dollars, 3/4 dollars
    2046 (base 7)                       2046_{7}
    36 degrees 15 minutes, 36度15分       36^\circ 15'
    9:40 in the morning, 11:05 at night 9:40 a.m., 11:05 p.m.
    one out of three, 百分之25, 3分之2      1/3, 25%, 2/3
    2.5成, 二成五, 三成                   25\%, 25\%, 30\%
    180元整                             180元
    3又1/2米, 三又三分之二, 一半, 七五折, 3……2  3\frac{1}{2} 米, 3\frac{2}{3}, \frac{1}{2}, 7.5 折, 3余2
    大约重20千克, 20千克左右              约20千克
    约走31.4米, 大约要走31.4米            约31.4米
    （1）3 （2）5, 第一空填3，第二空填5      3, 5
    东偏南60度                           南偏东30°
    x大于3, x1=1, x2=-2                  x>3, x_1=1, x_2=-2
    负5, 零下12℃, 零上五摄氏度             -5, -12℃, 5摄氏度
    3比2, 三比二, 2根号5                   3:2, 3:2, 2\sqrt{5}
    6×2=12元, 5.5+7=12.5(元), 180（升）    6×2 元=12 元, 5.5+7 元=12.5 元, 180 升
    下午3时30分, 3点20分, 三点半, 5点一刻       3:30 p.m., 3:20 点, 3:30 点, 5:15 点
    2 kg 500 g, 2 h 30 m                2 kg 500 g with units in place of letters
    三小时二十分, 一个半小时, 1元2角5分, 1米52    3小时20分, 1.5小时, 1.25元, 1.52米
    3亿5000万, 3万5千                    350000000, 35000
    三天半, 两个半, 十二块五, 两米五厘米, 36周岁  3.5天, 2.5个, 12.5元, 2米5厘米, 36岁
    x is odd                            x \equiv 1 \pmod{2}
    A=2 \quad B=-1                      A=2, B=-1
    so 14, it equals 6, exactly six     14, 6, six
    \{x \in \mathbb{R} : -7 \le x\}     \{x : -7 \le x\}

Each form applies to a whole answer only, so that no part of another answer changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from harness.answers.grammar.numbered_blanks import BLANKS, values_of_blanks
from harness.answers.grammar.numerals import number_in_words, with_joined_scales
from harness.answers.grammar.relations_in_words import in_signs
from harness.answers.grammar.units import is_counted, smaller_unit, unit_of

_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_SPACE = re.compile(r"\\[,;! ]|~|\s+")
_NUMBER = r"-?\d+(?:[.,]\d+)*(?:/\d+)?"

_EACH = re.compile(rf"每(?P<of>[\u3400-\u9fff]{{1,4}}?)\s*(?P<n>{_NUMBER})\s*(?P<unit>[\u3400-\u9fffA-Za-z]{{1,6}})")
_SPEED = re.compile(rf"(?P<of>[时分秒])速\s*[是为]?\s*(?P<n>{_NUMBER})\s*(?P<unit>[\u3400-\u9fffA-Za-z]{{1,6}})")
_POWER = re.compile(rf"({_NUMBER})\s*(mm|cm|dm|km|m|in|ft|yd|mi)\s?([23])")
_SQUARE = re.compile(rf"(?i)({_NUMBER})\s*(sq|cu)\.?\s*(mm|cm|dm|km|m|in|ft|yd|mi)\.?")
_MIXED_MONEY = re.compile(r"\\?\$\s*(\d+\s*\\[dt]?frac\s*(?:\{\d+\}\s*\{\d+\}|\d\s*\d)|\d+/\d+)")
_BASE = re.compile(r"([0-9A-Za-z]+)\s*(?:\(\s*(?:in\s+)?base[ -](\d{1,2})\s*\)|(?:in\s+)?base[ -](\d{1,2}))")
_DEGREES = re.compile(
    r"(-?\d+) ?(?:degrees?|度|°|\^ ?\{? ?\\circ ?\}?),? ?(?:and )?(\d+) ?(?:minutes?|分)"
    r"(?:,? ?(?:and )?(\d+) ?(?:seconds?|秒))?"
)
_CLOCK = re.compile(r"(?i)(1[0-2]|[1-9]):([0-5]\d)\s*(?:in\s+the\s+(morning|afternoon|evening)|(at\s+night))")
_NUMERAL = r"[零〇一二两三四五六七八九十百千]{1,8}"
PARTS_OF_DAY = "上午|早上|早晨|清晨|凌晨|中午|下午|傍晚|晚上|夜里"
"""Pattern of the words that say which half of the day an hour belongs to."""

_DAYTIME = re.compile(rf"({PARTS_OF_DAY})?\s*(\d{{1,2}})(?:([点时])零?(\d{{1,2}})分?|([:：])(\d\d))")
_HOUR_PART = re.compile(rf"({PARTS_OF_DAY})?\s*(\d{{1,2}}|{_NUMERAL})点(?:(钟|整|半|一刻|三刻)|({_NUMERAL})分)")
_HOUR_OF_PART = re.compile(rf"({PARTS_OF_DAY})\s*(\d{{1,2}}|{_NUMERAL})[点时]")
_COMPOUND = re.compile(r"(?:\d++\s*+[A-Za-z]++\s*+){1,3}\d++(?:\.\d++)?\s*+[A-Za-z]++")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_PERCENT = re.compile(r"百分之(\d+(?:\.\d+)?)")
_PARTS = re.compile(r"(\d+)分之(\d+)")
_DISCOUNT = re.compile(r"([1-9])\.?(\d)折|([一二三四五六七八九])([一二三四五六七八九])折")
_TENTHS = re.compile(r"(\d{1,2}(?:\.\d{1,3})?)成|([一二两三四五六七八九])成([一二三四五六七八九])?")
_EXACT_MONEY = re.compile(rf"(\d+(?:\.\d+)?|{_NUMERAL})\s*元整")
_REMAINDER = re.compile(r"商?(\d+)\s*(?:余|\s[Rr]\s|remainder|…{1,2}|\.{3,6}|⋯{1,2}|(?:\\[cl]?dots\s*){1,2})\s*(\d+)")
_SIGNED = re.compile(rf"(正负|负|零下|零上)\s*(\d+(?:\.\d+)?|{_NUMERAL})\s*(\D{{0,12}})")
_DEGREES_OF_AIR = re.compile(r"(?:℃|°\s*C|\^\s*\{?\s*\\circ\s*\}?\s*C|摄氏度|度|°)?")
_VERSUS = re.compile(rf"(?:\d+|{_NUMERAL})(?:\s*比\s*(?:\d+|{_NUMERAL})){{1,3}}")
_MIXED = re.compile(
    rf"([-−负]?)\s*(\d+|{_NUMERAL})又(?:(\d+)/(\d+)|(\d+|{_NUMERAL})分之(\d+|{_NUMERAL}?))\s*([\u3400-\u9fff]{{0,6}})"
)
_IN_WORDS = re.compile(r"(?=.*[大小等是为超]).{3,80}")
_TERM = r"(?:\\[a-z]+|[-−+\d./{}()√ ])+"
_ROOTS = re.compile(rf"([a-zA-Z])1\s*=({_TERM})(?:[,，;；]|或|和|\bor\b|\band\b)\s*\1(?:2)\s*=({_TERM})")
_AMOUNT = rf"(?:\d+(?:\.\d+)?|{_NUMERAL})\s*(?:[\u3400-\u9fff]{{1,4}}?|[a-zA-Z]{{1,3}}[²³]?|[%℃°])?"
VERB_OF_ROUGH_VALUE = r"(?:是|为|等于|[重长高宽深有]|(?:需要|需|要)?(?:走|行驶?|跑|骑|飞行?|游|用|花)?了?)"
"""Pattern of the verb, if any, between 约 and the quantity that it rounds: 约重12千克, 大约要走31.4米."""

_ROUGH = re.compile(rf"(?:大约|约|大概){VERB_OF_ROUGH_VALUE}\s*({_AMOUNT})|({_AMOUNT})左右")
_BEARING = re.compile(
    rf"(?:[在位于]{{1,2}})?([东西南北])偏([东西南北])\s*(\d{{1,2}}(?:\.\d)?|{_NUMERAL})\s*(?:°|度|\^\s*\{{?\s*\\circ\s*\}}?)(?:的?方向)?"
)
_UNIT_IN_BRACKETS = re.compile(
    r"((?:.*[=＝])?\s*[-−]?(?:\d+(?:\.\d+)?(?:/\d+)?|(?:\d+\s*)?\\[dt]?frac\s*\{\d+\}\s*\{\d+\}|\d+又\d+/\d+))"
    r"\s*[(（]\s*(?:单位\s*[:：是为]?\s*)?([\u3400-\u9fff]{1,4}(?:/[\u3400-\u9fff]{1,4})?|[\u3371-\u33df℃℉]|[A-Za-z]{1,3}[²³]?(?:/[a-z]{1,3}[²³]?)?)\s*[)）]"
)
_HALF = re.compile(
    rf"(\d+|{_NUMERAL})个?半(小时|钟头|天|年|个?月|米|千米|公里|元)|半(个?小时|个?钟头|年|个月|米|千米|公里|元|公顷|千克|公斤|吨|升)"
    rf"|(\d+|{_NUMERAL})(个?小时|个?钟头|天|年|个月|周|千米|公里|米|里|元|块|升|千克|公斤|斤|吨|个)半"
)
_PARTS_OF_QUANTITY = "千米|公里|分米|厘米|毫米|米|千克|公斤|毫克|克|吨|毫升|升|个?小时|分钟|秒钟?|分|秒|天|周|个月|年"
# Lazy, so that 五千米三百米 is 5千米 and 300米.
_JOINED = re.compile(rf"(?:(?:\d+|{_NUMERAL}?)\s*(?:{_PARTS_OF_QUANTITY})\s*零?){{2,4}}")
_PART_OF_QUANTITY = re.compile(rf"(\d+|{_NUMERAL}?)\s*({_PARTS_OF_QUANTITY})")
_DIGIT = r"(?:\d|[一二两三四五六七八九])"
_MONEY = re.compile(
    rf"(\d+|{_NUMERAL})[元块](?:零?({_DIGIT})[角毛]钱?(?:零?({_DIGIT})分钱?)?|零?({_DIGIT})分钱?|(?<=块)({_DIGIT}))"
)
_METRES = re.compile(rf"({_DIGIT})米(\d{{1,2}}|[一二三四五六七八九]{{1,2}})")
_OUT_OF = re.compile(r"(?i)([a-z]+(?:-[a-z]+)?)\s+out\s+of\s+([a-z]+(?:-[a-z]+)?)")
_PARITY = re.compile(r"([a-zA-Z])\s+is\s+(?:an\s+)?(odd|even)(?:\s+integer|\s+number)?")
_QUAD_LIST = re.compile(r"\\q?quad\s*(?=\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*=)")
_LEAD = re.compile(
    r"(?i)\s*(?P<open>\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*)?"
    r"(?:so|thus|hence|therefore|exactly|it\s+(?:is|equals)|the\s+(?:final\s+)?answer(?:\s+is|\s*:))[:,]?"
    r"(?P<end>(?(open)\s*\}|(?!))|[\s~]+(?=[^\s}]))"
)
_WORDS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}")
_REAL_SET = re.compile(r"(\\\{\s*)([a-z])\s*\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ)\s*(:|\\mid|\|)")
_ZERO_FUNCTION = re.compile(r"([a-zA-Z]\([a-z]\))\s*\\equiv")
_FOR_ALL = re.compile(
    r"(?:[\s,;]|\\[ ,;]|\\q?quad)*\\forall\s*(?:\\[,;:!]\s*)?([a-z])\s*\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ)\s*\Z"
)


def _each(match: re.Match[str]) -> str | None:
    """Return 60 千米/小时 for 每小时60千米; None if a part is no unit."""
    are_units = unit_of(match["of"]) is not None and unit_of(match["unit"]) is not None
    return rf"{match['n']}\text{{ {match['unit']}/{match['of']}}}" if are_units else None


def _power(match: re.Match[str]) -> str:
    return rf"{match[1]}\text{{ {match[2]}^{match[3]}}}"


def _square(match: re.Match[str]) -> str:
    return rf"{match[1]}\text{{ {'square' if match[2].lower() == 'sq' else 'cubic'} {match[3]}}}"


def _with_base(match: re.Match[str]) -> str | None:
    """Return `2046_{7}` for `2046 (base 7)`; None if a digit does not exist in this base."""
    base = int(match[2] or match[3])
    try:
        int(match[1], base)
    except ValueError:
        return None
    return f"{match[1]}_{{{base}}}"


def _degrees(match: re.Match[str]) -> str | None:
    """Return `36°15'` for `36 degrees 15 minutes`; None for 60 minutes or seconds and more."""
    small = [int(part) for part in match.groups()[1:] if part is not None]
    if any(part >= _SIXTY for part in small):
        return None
    signs = ("'", "''")
    return rf"{match[1]}^\circ " + " ".join(f"{part}{sign}" for part, sign in zip(small, signs, strict=False))


def _clock(match: re.Match[str]) -> str | None:
    """Return `9:40 a.m.` for `9:40 in the morning`; None for an hour not in that part of the day: 2:00 at night."""
    hour, when = int(match[1]), (match[3] or "night").lower()
    hours = {"morning": range(1, 12), "afternoon": (12, *range(1, 7)), "evening": range(4, 12), "night": range(8, 12)}
    if hour not in hours[when]:
        return None
    return f"{match[1]}:{match[2]} {'a' if when == 'morning' else 'p'}.m."


def _out_of(match: re.Match[str]) -> str | None:
    parts = number_in_words(match[1]), number_in_words(match[2])
    return None if None in parts else f"{parts[0]}/{parts[1]}"


def _parity(match: re.Match[str]) -> str:
    return rf"{match[1]} \equiv {int(match[2] == 'odd')} \pmod{{2}}"


def _count(text: str) -> int | None:
    """Return the value of a number in digits or Chinese numerals; None for numerals that are no number: 二百五."""
    if text.isascii():
        return int(text)
    digits = number_in_words(text)
    return int(digits) if digits is not None and digits.isdigit() else None


def _daytime(match: re.Match[str]) -> str | None:
    """Return `3:30 p.m.` for `下午3时30分`; None with neither 点 nor a part of the day: `3时20分` may be a duration."""
    if match[1] is None and match[3] != "点":
        return None
    return _at(match[1], int(match[2]), int(match[4] or match[6]))


def _hour_part(match: re.Match[str]) -> str | None:
    """Return `3:30 点` for `三点半`, `5:15 p.m.` for `下午5点一刻`; None if there is no such time."""
    hour, minute = _count(match[2]), _count(match[4]) if match[4] else _MINUTES_OF_PART[match[3]]
    return None if hour is None or minute is None else _at(match[1], hour, minute)


def _hour_of_part(match: re.Match[str]) -> str | None:
    """Return `9:00 a.m.` for 上午9时; None if there is no such time."""
    hour = _count(match[2])
    return None if hour is None else _at(match[1], hour, 0)


_MINUTES_OF_PART = {"钟": 0, "整": 0, "一刻": 15, "半": 30, "三刻": 45}


def _at(when: str | None, hour: int, minute: int) -> str | None:
    """Return a time of day; None if no clock shows it, or if `when`, a part of the day, may not include the hour."""
    if hour >= _HOURS or minute >= _SIXTY:
        return None
    if when is not None and hour not in _HOURS_OF_PART[when]:
        return None
    if when is None or hour > _NOON:
        # 点 stays, so that 3点20分 is read as a time of day, and never as the ratio 3:20.
        return rf"{hour}:{minute:02}\text{{ 点}}"
    return f"{hour}:{minute:02} {'p' if hour in _AFTER_NOON.get(when, ()) else 'a'}.m."


def _compound(match: re.Match[str]) -> str | None:
    """Return `2 kg 500 g` with its units marked as units, since bare letters are variables.

    None unless each unit is known and smaller than the unit before it. An m behind hours is minutes.
    """
    parts = [(number, unit) for number, unit in _QUANTITY.findall(match[0])]
    parts = [
        (number, "min" if unit == "m" and last and unit_of(last[1]) == unit_of("h") else unit)
        for (number, unit), last in zip(parts, [None, *parts], strict=False)
    ]
    if any(smaller_unit(larger[1], smaller[1]) is None for larger, smaller in pairwise(parts)):
        return None
    return "".join(rf"{number}\text{{ {unit} }}" for number, unit in parts)


def _half(match: re.Match[str]) -> str | None:
    """Return 1.5 小时 for 一个半小时 and 一小时半, 0.5 小时 for 半小时, 2.5 个 for 两个半."""
    count = _count(match[1] or match[4] or "0")
    unit = (match[2] or match[3] or match[5]).replace("钟头", "小时").replace("个小时", "小时")
    unit = "个月" if unit == "月" else unit
    return None if count is None else rf"{count}.5\text{{ {unit}}}"


def _join_units(match: re.Match[str]) -> str | None:
    """Return 3 小时 20 分 for 三小时二十分; None unless each unit is smaller than the unit before it."""
    parts = [(_count(number), unit) for number, unit in _PART_OF_QUANTITY.findall(match[0])]
    if any(count is None for count, _ in parts):
        return None
    if any(smaller_unit(larger[1], smaller[1]) is None for larger, smaller in pairwise(parts)):
        return None
    return "".join(rf"{count}\text{{ {unit} }}" for count, unit in parts)


def _money(match: re.Match[str]) -> str | None:
    """Return 1.25 元 for 1元2角5分, 12.5 元 for 十二块五."""
    yuan, jiao, fen, only_fen, colloquial = match.groups()
    counts = [_count(part or "0") for part in (yuan, jiao or colloquial, fen or only_fen)]
    return None if None in counts else rf"{counts[0]}.{counts[1]}{counts[2]}\text{{ 元}}"


def _metres(match: re.Match[str]) -> str:
    """Return 1.75 米 for 1米75 and 一米七五."""
    below = "".join(str(_count(digit)) for digit in match[2])
    return rf"{_count(match[1])}.{below}\text{{ 米}}"


def _with_sign(match: re.Match[str]) -> str | None:
    """Return -5 for 负5, -12℃ for 零下十二℃; None if what follows is no unit, or behind 零下 and 零上 no degrees."""
    sign, number, behind = match[1], match[2], match[3].strip()
    digits = number_in_words(number) or number
    is_temperature = _DEGREES_OF_AIR.fullmatch(behind) is not None
    if not digits.isascii() or not (is_temperature or ("负" in sign and (behind in _PERCENTS or _is_unit(behind)))):
        return None
    shown = rf"\text{{ {behind}}}" if _is_unit(behind) else behind
    return f"{_SIGN_OF[sign]}{digits}{shown}"


_SIGN_OF = {"负": "-", "零下": "-", "零上": "", "正负": r"\pm "}
_PERCENTS = ("%", "％", r"\%")


def _is_unit(words: str) -> bool:
    return words.replace("/", "").isalpha() and (unit_of(words) is not None or is_counted(words))


def _versus(match: re.Match[str]) -> str | None:
    """Return 3:2 for 3比2."""
    parts = [_count(part.strip()) for part in match[0].split("比")]
    return None if None in parts else ":".join(map(str, parts))


def _mixed_number(match: re.Match[str]) -> str | None:
    r"""Return `3\frac{2}{3}` for 3又2/3 and 三又三分之二, perhaps with a unit; None for an improper fraction."""
    sign, unit = "-" if match[1] else "", match[7]
    whole, above, below = (_count(part or "") for part in (match[2], match[3] or match[6], match[4] or match[5]))
    if whole is None or below is None or above is None or not 0 < above < below or (unit and not _is_unit(unit)):
        return None
    return rf"{sign}{whole}\frac{{{above}}}{{{below}}}" + (rf"\text{{ {unit} }}" if unit else "")


def _rough(match: re.Match[str]) -> str | None:
    """Return 约20千克 for 大约重20千克 and 20千克左右; None if what is behind the number is no unit."""
    amount = match[1] or match[2]
    number = re.match(rf"\d+(?:\.\d+)?|{_NUMERAL}", amount)
    unit = "" if number is None else amount[number.end() :].strip()
    return f"约{amount}" if not unit or unit in "%℃°" or _is_unit(unit) or unit_of(unit) is not None else None


def _bearing(match: re.Match[str]) -> str | None:
    """Return a bearing counted from north or south: 南偏东30° for 东偏南60度; None if it names no direction."""
    base, towards, degrees = match[1], match[2], number_in_words(match[3]) or match[3]
    if (base in "东西") == (towards in "东西"):
        return None
    angle = Fraction(degrees)
    if base in "东西":
        base, towards, angle = towards, base, _RIGHT_ANGLE - angle
    return (
        f"{base}偏{towards}{angle if angle.denominator == 1 else float(angle)}°" if 0 < angle < _RIGHT_ANGLE else None
    )


def _discount(match: re.Match[str]) -> str:
    return rf"{_count(match[1] or match[3])}.{_count(match[2] or match[4])}\text{{ 折}}"


def _tenths(match: re.Match[str]) -> str:
    """Return 25 % for 2.5成 and 二成五: 成 is a tenth."""
    tenths = Fraction(match[1] or f"{_count(match[2])}.{_count(match[3] or '零')}")
    percent = 10 * tenths
    return rf"{percent if percent.denominator == 1 else float(percent)}\%"


def _in_unit(match: re.Match[str], unit: str) -> str | None:
    """Return 180 元 for 180元整, 36 岁 for 36周岁."""
    count = match[1] if match[1].isascii() else _count(match[1])
    return None if count is None else rf"{count}\text{{ {unit}}}"


def _unit_in_brackets(match: re.Match[str]) -> str | None:
    """Return 5.5+7=12.5 元 for 5.5+7=12.5(元), 180 升 for 180（升）."""
    value = usual_spelling(match[1]) if "又" in match[1] else match[1]
    if not (match[2][0].isascii() or "\u3400" <= match[2][0] <= "\u9fff"):
        return f"{value}{match[2]}"  # ℃, ㎡
    # A letter in brackets may be a factor, but not behind an equation of numbers: 4×3=12(m).
    may_be_factor = match[2].isascii() and len(match[2]) == 1 and ("=" not in value or re.search("[a-z]", value))
    unit = match[2].replace("²", "^2").replace("³", "^3")
    return rf"{value}\text{{ {unit}}}" if not may_be_factor and (unit_of(unit) or _is_unit(unit)) else None


_HOURS, _NOON, _RIGHT_ANGLE = 24, 12, 90
_HOURS_OF_PART = {
    "凌晨": (*range(1, 7),), "清晨": (*range(4, 9),), "早晨": (*range(4, 12),), "早上": (*range(4, 12),),
    "上午": (*range(1, 12),), "下午": (*range(1, 12), *range(13, 24)), "傍晚": (*range(4, 8), *range(16, 20)),
    "晚上": (*range(5, 12), *range(17, 24)), "中午": (11, 12, 1, 13), "夜里": (1, 2, 3, 4, 9, 10, 11, 21, 22, 23),
}  # fmt: skip
"""Part of the day → its hours, counted to 12 or to 24. 12 belongs to 中午 only, and 0 to no part, since usage differs:
晚上12点 is midnight to most people.
"""

_AFTER_NOON = {"中午": (12, 1), "下午": range(1, 12), "傍晚": range(4, 8), "晚上": range(5, 12), "夜里": range(9, 12)}
_SIXTY = 60
"""Minutes of a degree, and seconds of a minute."""

_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (re.compile(r"(\d+) in (\d+)"), lambda match: rf"\frac{{{match[1]}}}{{{match[2]}}}"),
    (_EACH, _each),
    (_SPEED, _each),
    (_POWER, _power),
    (_SQUARE, _square),
    (_MIXED_MONEY, lambda match: rf"{match[1]}\text{{ dollars}}"),
    (_BASE, _with_base),
    (_DEGREES, _degrees),
    (_CLOCK, _clock),
    (_OUT_OF, _out_of),
    (_PARITY, _parity),
    (_DAYTIME, _daytime),
    (_HOUR_PART, _hour_part),
    (_HOUR_OF_PART, _hour_of_part),
    (_COMPOUND, _compound),
    (_PERCENT, lambda match: rf"{match[1]}\%"),
    (_PARTS, lambda match: rf"\frac{{{match[2]}}}{{{match[1]}}}"),
    (_MIXED, _mixed_number),
    (_DISCOUNT, _discount),
    (_TENTHS, _tenths),
    (_EXACT_MONEY, lambda match: _in_unit(match, "元")),
    (_REMAINDER, lambda match: rf"{match[1]}\text{{ remainder }}{match[2]}"),
    (_HALF, _half),
    (_JOINED, _join_units),
    (_MONEY, _money),
    (_METRES, _metres),
    (_SIGNED, _with_sign),
    (_VERSUS, _versus),
    (_ROOTS, lambda match: rf"{match[1]}_1={match[2]}, {match[1]}_2={match[3]}"),
    (BLANKS, values_of_blanks),
    (_BEARING, _bearing),
    (re.compile("一半"), lambda _: r"\frac{1}{2}"),
    (re.compile(r"(-?\d{0,9})根号下?(\d{1,9})"), lambda match: rf"{match[1]}\sqrt{{{match[2]}}}"),
    (re.compile(rf"(\d+|{_NUMERAL})周岁"), lambda match: _in_unit(match, "岁")),
    (_UNIT_IN_BRACKETS, _unit_in_brackets),
    # Last, for the first form that matches decides, and this one matches most sentences.
    (_IN_WORDS, lambda match: in_signs(match[0])),
)
_FORMS_OF_LIMITS = ((_ROUGH, _rough),)
"""Forms that limit a value: they are read, and name none."""


def _flat(source: str) -> str:
    """Return an answer without commands of text, with single spaces."""
    return _SPACE.sub(" ", _TEXT.sub(r"\1", source)).strip()


@lru_cache(maxsize=1_024)
def is_own_spelling(source: str) -> bool:
    """Whether an answer is as a whole one of the forms above that name a value, such as 每小时60千米."""
    flat = _flat(source).rstrip(".。")
    matches = ((form.fullmatch(flat), rewritten) for form, rewritten in _FORMS)
    return any(match is not None and rewritten(match) is not None for match, rewritten in matches)


def numbers_blanks(source: str) -> bool:
    """Whether a text is the values of numbered blanks, which state their order: （1）3 （2）5."""
    match = BLANKS.fullmatch(_flat(source))
    return match is not None and values_of_blanks(match) is not None


def usual_spelling(source: str) -> str:
    """Return an answer in the spelling that the grammar reads; `source` itself if it has none of the forms above."""
    source = with_joined_scales(source)
    flat = _flat(source).rstrip(".")
    for form, rewritten in (*_FORMS_OF_LIMITS, *_FORMS):
        if (match := form.fullmatch(flat)) is not None:
            return rewritten(match) or source
    # Words that only lead to the answer ("so 14") are dropped if a number in words, or no words at all, remain.
    if (lead := _LEAD.match(source)) is not None and "=" not in source and source[lead.end() :].strip():
        # A command that holds the lead and the answer is opened anew for the answer.
        within = lead["open"] is not None and not lead["end"].rstrip().endswith("}")
        rest = f"{lead['open'] if within else ''}{source[lead.end() :]}"
        plain = _TEXT.sub(r"\1", rest).strip()
        if (digits := number_in_words(plain)) is not None:
            return digits
        if _WORDS.search(plain) is None:
            return rest
    if "quad" in source:
        source = _QUAD_LIST.sub(", ", source)
    if r"\in" in source and (real := _REAL_SET.match(source)) is not None:
        return f"{real[1]}{real[2]} {real[3]}{source[real.end() :]}"
    if r"\equiv" in source and "mod" not in source:
        source = _ZERO_FUNCTION.sub(r"\1=", source)
    if r"\forall" in source:
        source = _FOR_ALL.sub(r"\\text{ for all real }\1", source)
    return source
