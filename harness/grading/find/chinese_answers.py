r"""Sentences in Chinese whose one quantity is their answer: 答：这辆车运4箱, 所以练习本的单价是3元.

`chinese` reads the few verbs that state a value in any text. Where a sentence is known to answer the question, more of
them do. It is known for three reasons, each of which allows less than the one before it:

    the label 答： or 答案是 stands before it      what Chinese pupils write before the sentence that answers
    it begins with 所以, 因此, 一共 …             it draws the conclusion; 比 …多 and 原来 are left open
    it is the last sentence of the reply          also no earlier sentence may conclude with another value

Such a sentence states its quantity if all of this holds:

    it is one clause, and the quantity has a form of `chinese` and ends it           这辆车运4箱
      or is a time, behind which stands only what can be done in it                 3天能看完这本书
      or is a time of day with its half of the day, and what happens then           电影在下午4时10分结束
    it holds no second quantity, unless that says which things are meant            第三个角 · 6和8的最大公因数
      or is, behind a label or 所以, a time or the counted subject before the verb   5小时行驶350千米 · 3袋大米重4千克
    directly before the quantity stands a verb of a closed list, a comparison or 每  运4箱 · 贵8元 · 每本3元
    no word `limits` the quantity, nor makes it a part of another one               不是12元 · 比12元
    no 每 makes it a rate, unless the reference is one or has no unit (`chinese_clauses`)    每小时行40千米
    before a number without a unit, a ratio or an equation stands 是, 为 or 等于       两个数的比是2:3

Behind a comma, such a sentence may follow from a clause without a quantity that limits nothing (根据勾股定理，…),
from an equation in letters that it solves (3x=15，所以x的值是5), or from a calculation whose result it repeats
(24+21=45，所以一共有45人). A label may be a box, too: a sentence in a box is read as behind 答：.

These suffice: a sentence denies or limits its only quantity by a word of a closed class (negations, adverbs of doubt,
conjunctions of condition, verbs of speech), and one with no second quantity has no other value to give. A time or a
count before the verb may be the asked one only if it equals the reference, which leaves the answer undecided
(`chinese_clauses`). Whether the quantity is the one that was asked for is not read: 答：女生有12人 states 12人, too,
where boys were asked for.
"""

from __future__ import annotations

import re
from fractions import Fraction

from harness.answers.grammar.numerals import number_in_words
from harness.answers.grammar.spellings import PARTS_OF_DAY, is_own_spelling
from harness.grading.find.chinese import (
    CLASSIFIER,
    ENDS,
    LEAD,
    NUMERAL_SIGNS,
    UNIT,
    chinese_statement,
    is_end_of_deed,
    judgement,
    limiting_word,
    limits,
    quantity_of,
    starts_of,
)
from harness.grading.find.chinese_forms import CONCLUDED, STATING_FORMS, UNKNOWN, end_of_premise

MAX_CHARS = 120
"""Longest sentence that is read, in characters."""

_LEADS = re.compile(rf"\s*(?:{LEAD})*")
_SO = re.compile(r"(?:所以|因此|因而|故|于是|最后|最终|从而|可知|可得|综上(?:所述)?|∴)[，,：:、\s]*\Z")
_TOTAL = re.compile("一共|总共")
_COUNTED = rf"(?:{CLASSIFIER}|天|小时|分钟|年|周|个月)"
_NUMBER = rf"(?:\d+|[{NUMERAL_SIGNS}]+)"
_FIGURE = (
    rf"(?:[{NUMERAL_SIGNS}]+|\d+)(?:角[形星]|边形|[面棱][体柱锥台]|角[柱锥])|三角(?=[函板尺架巾])|十字(?:形|架|路口)?"
)
"""Names that hold a number which counts nothing: 三角形, 正六边形, 四棱柱, 十字路口."""

_MEANT = re.compile(
    rf"[这那前后](?:{_NUMBER})?{_COUNTED}|第{_NUMBER}(?!{CLASSIFIER}?[步问题种类次])(?:{_COUNTED})?"
    rf"|(?<![{NUMERAL_SIGNS}\d第.])一(?:{CLASSIFIER}|{UNIT})|每(?:{UNIT}|{CLASSIFIER})"
    rf"|(?<![{NUMERAL_SIGNS}\d第.])(?:\d+|[{NUMERAL_SIGNS}]+){_COUNTED}[^\d{NUMERAL_SIGNS}的]{{1,6}}的|[两二三四2-4]个[解根](?=[是为])|[两二三四五2-5]个?空(?=依次|分别|填)"
    rf"|(?<![{NUMERAL_SIGNS}\d第.])(?:\d+|[{NUMERAL_SIGNS}]+){_COUNTED}[^\d{NUMERAL_SIGNS}的]{{0,4}}(?:一共|总共)"
    rf"|{_NUMBER}月(?:{_NUMBER}[日号])?|{_NUMBER}[日号]|[两三][车人队船地城数桶班边段者]|{_FIGURE}"
    rf"|(?<![{NUMERAL_SIGNS}\d.])(?:百分[数位点率比]|[十千万]分位|一圈(?!多))|一共|一起|一直|一样|统一"
)
"""Words with a numeral that say which things are meant and are no quantity: 第三个, 两个分数的, 一支, 百分数."""

_NUMBERS_OF = re.compile(
    r"(?:\d+(?:[、,，]\d+)*[和与]\d+的(?:最[大小]公[约因倍]数|和|差|积|商|平均数)"
    r"|把\d+(?:\.\d+)?(?:/\d+)?\s*[%％]?[化改]成(?:百分数|小数|(?:最简|假|带)?分数))(?=是|为|等于|[=＝])"
)
"""Numbers of which the answer is a function: 6和8的最小公倍数, 把0.125化成百分数."""

_COUNTED_SUBJECT = re.compile(
    rf"\A(?P<head>(?:(?:买|用|装|做|修|种)了?)?|[^\d{NUMERAL_SIGNS}的比每]{{0,8}}(?={_NUMBER}(?:\.\d+)?(?:天|个?小时|分钟|秒|年|周|个月)))"
    rf"{_NUMBER}(?:\.\d+)?(?P<unit>{CLASSIFIER}|块|天|个?小时|分钟|秒钟?|年|周|个月)"
    rf"(?P<rest>[^\d{NUMERAL_SIGNS}的比每]{{1,10}}(?:全[长书程部]的)?)\Z"
)
"""A clause of which a time or the counted subject is no answer, up to its verb: 汽车5小时行驶, 买6本练习本要."""

_CLASSIFIER_OF_ANIMALS = re.compile(rf"(?<=[每这那\d{NUMERAL_SIGNS}])只")
"""只 as a classifier; elsewhere it is "only", which limits a quantity."""

_OF_ANOTHER = re.compile(
    r"(?:[比第每各按从自由以近到隔与和跟的被占]|(?<!住)在|(?<![用花剪截])去|(?<![装灌坐填盛])满|[大小多少高低]了?到|[加减乘除][去上以]?)\s*\Z"
)
"""Words directly before a quantity that make it a part of another, or its measure."""

_OF_QUANTITY = re.compile(rf"{_NUMBER}{_COUNTED}[^\d{NUMERAL_SIGNS}的]{{0,8}}的\s*\Z")
"""Words before a fraction that make it a part of another quantity: 12个苹果的三分之一."""

_OF_FRACTION = re.compile(r"(?:的|占|[一总]共|共)\s*\Z")
_VERBS = re.compile(
    r"(?:(?:是|[^以认作成]为|等于|[共有要付行走跑看读写做修挖织铺买卖分借还收挣赚亏剪切截锯喝吃放住坐站排骑飞游爬跳用花找需得装运种栽剩植养打获值能占]"
    r"|余下|需要|树木?|加工|生产|盈利|[降涨]价|增加|减少|增长|增产|减产|节[约省]|提高|降低|下降|上升|完成|相[距差]|距离?|利息|参加|经过|相当于|(?:折|共|[地田园块]|(?<![\u3400-\u9fff]))合|取|退|行驶|航行|骑行|步行|付给[\u3400-\u9fff]{1,4}|住在"
    r"|(?:距离?|离)[\u3400-\u9fff]{1,5}?"
    r"|[长宽高深厚重远差]|占地|(?:共|(?<![\u3400-\u9fff])|[校班队园厂店村])有(?:学生|男生|女生|人口|座位|图书|果树|树|书))(?:了|过|去|出|回|成|下|掉|完|满|好|上|进|起|着|给)*)\s*\Z"
)
"""Verbs that may stand directly before a quantity: a copula, or a verb of having, measuring, doing or changing."""

_VALUE_NAMES = re.compile(
    r"(?:(?<![原前])(?:现|售|定|单|总|票|进)价|(?:表?面|占地|底面|侧面)积|[体容]积|周长|[边棱斜]长|半径|直径|高度|长度|宽度|深度"
    r"|时速|速度|身高|体重|利润|本息|得分)\s*\Z"
)
"""Names of a value that may stand directly before it: 现价160元."""

_SHIFTED = re.compile(r"(?<!目)前(?!进)|原|降|涨|还[要需]|比|多(?!边形)|少")
"""Words by which a clause speaks of another time or of a difference: 降价前售价160元, 还要5小时行驶350千米."""

_COMPARED = re.compile(r"比[^\d]{1,20}[多少大小贵快慢早晚轻短矮](?:了|出)?\s*\Z|比[^\d]{1,20}便宜了?\s*\Z")
_EACH = re.compile(rf"(?:平均)?每(?:{UNIT}|{CLASSIFIER})[\u3400-\u9fff]{{0,6}}\s*\Z")
"""`_COMPARED`, `_EACH`: the other words directly before a quantity: 比一支铅笔贵, 每本练习本."""

_COPULA = re.compile(r"(?:是|[^以认作成]为|等于|[=＝:：])\s*\Z")
_DONE_IN_TIME = re.compile(r"(?:就|便)?(?:能|可以|可)(?:全部|刚好|正好)?(?P<deed>[\u3400-\u9fff]{1,12})")
_WHEN_AND_WHO = re.compile(r"\A后?(?:两[车人船队])?")
_WHO = (
    r"(?:[这那本该](?:[场部节列次辆个架班])?)?(?:电影|影片|节目|演出|表演|比赛|球赛|会议|大会|活动|考试|课程?|火车|列车|动车|高铁|汽车"
    r"|客车|货车|公交车|班车|校车|地铁|飞机|航班|轮船|船|车|学校|商店|超市|图书馆|公园|银行|[他她它我]们?|大家|同学们?|学生们?|老师"
    r"|爸爸|妈妈|爷爷|奶奶|小[明红华丽强刚军芳亮东林云兰]|[甲乙丙]车?|两车|两人)"
)
_AT_TIME = re.compile(
    rf"(?:{_WHO})?[在于]?(?P<time>(?:{PARTS_OF_DAY})?\d{{1,2}}(?:[:：]\d\d|[时点](?:\d{{1,2}}分|整|半)?))"
    r"(?:结束|开始|出发|到达(?:[甲乙丙丁][地站城]|终点站?|目的地)?|放学|上课|下课|开会|散会|相遇|起床|完成|开门|关门|开车|发车|到站|放映|开演)"
)
"""A time of day at which something begins or ends: 电影9:40结束. No word but its half of the day stands before it."""

_TIME = re.compile(rf"{_NUMBER}(?:\.\d+)?\s*(?:天|个?小时|分钟|秒|年|个月|周)")
_FRACTION = re.compile(
    rf"(?:\d+/\d+|百分之[{NUMERAL_SIGNS}]+点[{NUMERAL_SIGNS}]+|[{NUMERAL_SIGNS}]+分之[{NUMERAL_SIGNS}]+|\d+(?:\.\d+)?\s*[%％])"
)
_NAMED_FRACTION = re.compile(rf"[^\d{NUMERAL_SIGNS}/:：∶%％半负−-]*(?P<value>{_FRACTION.pattern})")
_VALUE_WITH_UNIT = re.compile(rf"[\d{NUMERAL_SIGNS}半]\s*(?:[%％点时分折成]|{UNIT}|{CLASSIFIER})")
RATIO = re.compile(r"\d+(?:\.\d+)?(?:\s*[:：∶]\s*\d+(?:\.\d+)?){1,3}")
_OF_LIST = re.compile("分别|依次|原式")
_WEEKDAY = re.compile(r"(?P<head>[^，,。；;]{0,20}[是为])\s*(?P<day>(?:星期|周|礼拜)[一二三四五六日天])")
_ANY_QUANTITY = re.compile(
    # A time of day is one quantity.
    r"\d{1,2}(?:[:：]|\s*[时点]\s*(?=\d{1,2}\s*分))\d{1,2}(?:\s*分)?"
    rf"|[-−]?\d+(?:\.\d+)?(?:/\d+)?\s*(?:[%％]|(?:{UNIT}|{CLASSIFIER})(?:/(?:{UNIT}))?)?|[{NUMERAL_SIGNS}]+(?:{UNIT}|{CLASSIFIER})"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_MIN_HAN = 2
"""Number of Chinese characters beside its quantities that make a text a sentence, at least."""

_EXPRESSION = r"[\d.\s+×÷*/()（）%％√²−-]"
_VALUE = r"\d+(?:\.\d+)?(?:/\d+)?\s*[%％]?"
_CALCULATION = re.compile(
    r"(?:\s*(?:解|列式|列式计算)[：:]\s*)?"
    rf"(?:\s*(?={_EXPRESSION}{{0,80}}\d\s*[+×÷*/−-])(?:{_EXPRESSION}{{1,80}}[=＝])+"
    rf"\s*(?P<result>{_VALUE})\s*(?:(?P<bracket>[（(])?(?P<unit>(?:{UNIT}|{CLASSIFIER})(?:/(?:{UNIT}))?)(?(bracket)[)）]))?\s*"
    r"[，,；;])+\s*"
)
"""Equations in numbers before a conclusion, with the result of the last one: `24+21=45（人），`."""

_CALCULATED = re.compile(
    rf"(?<=[是为])\s*(?:(?={_EXPRESSION}{{0,60}}\d\s*[+×÷*/−-]){_EXPRESSION}{{1,60}}[=＝])+(?=\s*{_VALUE})"
)
"""A calculation before its result: 最小公倍数是2×2×2×3=24."""

_CHANGES_NUMBER = re.compile(rf"[-−:：∶%％半负]|/(?!(?:{UNIT}))|\d\s*(?:[百万亿]|千(?![米克瓦]))|分之")
"""Signs by which an answer has another value than its one number; 千 of 千米 and the stroke of 千米/时 are none."""

_WORK = re.compile(
    rf"(?=[^，,。；;]*[a-zA-Z])[-−+×÷*/^²³()（）.\da-zA-Z\s]{{1,40}}[=＝<>＜＞≤≥][-−+×÷*/^²³()（）.\da-zA-Z\s]{{1,40}}[，,](?={LEAD})"
)
"""An equation or inequality in letters before its solution: 3x=15，所以x的值是5."""

_REASON = re.compile(
    r"(?:根据|由(?!于)|利用|运用)[^，,。；;：:？?！!\d]{0,16}(?:定理|公式|题意|性质|定义|法则|意义|关系|原理|规律)(?:可得|可知|得|知)?[，,]\s*"
    rf"|[^，,。；;：:？?！!\d{NUMERAL_SIGNS}]{{1,30}}(?<![看做想说][法])(?<!意见|观点|回答)[，,]\s*(?={LEAD})"
)
"""A clause before the statement, without a number, which it follows from: 根据勾股定理，斜边长是10厘米."""

_TOTALS = re.compile("[一总]?共")
_CONCLUDES = re.compile(rf"(?:(?<![^。！？\n]){LEAD}|答案)[^。！？\n]*")
_IN_DIGITS_OR_WORDS = re.compile(rf"\d+(?:\.\d+)?|(?:(?!千[米克瓦])[{NUMERAL_SIGNS}点])+")
_VALUES = re.compile(rf"\d+(?:\.\d+)?|(?:(?!千[米克瓦])[{NUMERAL_SIGNS}])+(?={CLASSIFIER}|{UNIT}|分之)")


def answering_quantity(sentence: str, *, announced: bool = False, earlier: str = "") -> tuple[int, int] | None:
    """Return the span of the one quantity of a sentence that answers the question; None if it has no such form.

    announced: a label such as 答： stands before the sentence. earlier: the text before it, where there is no label.
    """
    end = len(sentence.rstrip(ENDS))
    lead = _LEADS.match(sentence)
    begin = 0 if lead is None else lead.end()
    if end - begin > MAX_CHARS:
        return None
    concludes = begin > 0 or _TOTAL.match(sentence, begin) is not None
    span = (
        _solutions(sentence, begin, end)
        or _timed(sentence, begin, end)
        or _at_time_of_day(sentence, begin, end)
        or _last_quantity(sentence, begin, end, answers=announced or concludes)
    )
    if span is None:
        return None
    if not announced:
        before = sentence[begin : span[0]]
        if "原来" in before or _COMPARED.search(before) is not None:
            return None
        if not concludes and not agrees(earlier, sentence[slice(*span)]):
            return None
    return span


def stated_quantity(sentence: str, *, announced: bool = False, earlier: str = "") -> tuple[int, int] | None:
    """Return the span of the quantity that a sentence states, in a form of `chinese` or of this module; else None.

    24+21=45，所以一共有45人 is read as 24+21=45。所以一共有45人, if the conclusion has the result of the calculation.
    announced, earlier: see `answering_quantity`.
    """
    if (calculated := _CALCULATED.search(sentence)) is not None:
        # The value is read in the calculation's place, which stays in the answer, so that it is compared too.
        first, end = calculated.span()
        span = stated_quantity(sentence[:first] + sentence[end:], announced=announced, earlier=earlier)
        return None if span is None or not span[0] <= first < span[1] else (span[0], span[1] + end - first)
    begin = _conclusion(sentence)
    if not begin and (work := _WORK.match(sentence)) is not None:
        lead = _LEADS.match(sentence, work.end())
        if lead is not None and (solved := _solutions(sentence, lead.end(), len(sentence.rstrip(ENDS)))) is not None:
            return solved
    conclusion = sentence[begin or end_of_premise(sentence) or _end_of_reason(sentence) :]
    # The name in x的值是5 adds nothing, so the value is tried before `chinese_statement`, which takes the name with it.
    lead = _LEADS.match(conclusion)
    first, end = 0 if lead is None else lead.end(), len(conclusion.rstrip(ENDS))
    unknown = UNKNOWN.fullmatch(conclusion, first, end)
    span = (
        (None if unknown is None else unknown.span("list"))
        or ((first, end) if 0 < first < end and is_own_spelling(conclusion[first:end]) else None)
        or chinese_statement(conclusion, announced=announced)
        or answering_quantity(conclusion, announced=announced, earlier=earlier)
    )
    if span is None or (begin and not _repeats_result(sentence, conclusion[slice(*span)])):
        return None
    begin = len(sentence) - len(conclusion)
    return begin + span[0], begin + span[1]


def _end_of_reason(sentence: str) -> int:
    """Return where the clause behind a reason begins; 0 without a reason, or if it limits what follows from it."""
    reason = _REASON.match(sentence)
    if reason is None or not _is_plain(reason.group().rstrip("，, ").removeprefix("根据").replace("题意", "")):
        return 0
    return reason.end()


def unread_conclusion(sentence: str) -> tuple[int, int] | None:
    """Return the span of the last quantity of a conclusion behind a calculation; None if no conclusion stands there."""
    begin = _conclusion(sentence)
    quantities = list(_ANY_QUANTITY.finditer(sentence, begin)) if begin else []
    return quantities[-1].span() if quantities else None


def _conclusion(sentence: str) -> int:
    """Return where the conclusion of a sentence begins that stands behind a calculation; 0 if there is none."""
    calculation = _CALCULATION.match(sentence)
    if calculation is None:
        return 0
    begin = calculation.end()
    lead = _LEADS.match(sentence, begin)
    concludes = (lead is not None and lead.end() > begin) or _TOTALS.match(sentence, begin) is not None
    return begin if concludes else 0


def _repeats_result(sentence: str, answer: str) -> bool:
    """Whether an answer is the result of the calculation with which its sentence begins, in the same unit."""
    calculation = _CALCULATION.match(sentence)
    if calculation is None:
        return False
    if (fraction := _NAMED_FRACTION.fullmatch(answer)) is not None:
        return _fraction(fraction["value"]) == _fraction(calculation["result"])
    answer = re.sub(_FIGURE, "", answer)
    numbers = list(_IN_DIGITS_OR_WORDS.finditer(answer))
    if len(numbers) != 1 or _CHANGES_NUMBER.search(answer) is not None:
        return False
    number = numbers[0].group()
    digits = number_in_words(number) if number[0] in NUMERAL_SIGNS else number
    has_unit = answer[numbers[0].end() :].lstrip().startswith(calculation["unit"] or "")
    return digits is not None and has_unit and Fraction(digits) == _fraction(calculation["result"])


def _fraction(text: str) -> Fraction | None:
    """Return the value of a number, a fraction or a percentage, in digits or in words; None for any other text."""
    if "分之" in text:
        text = (number_in_words(text) or "").replace("\\%", "%")
    number = text.rstrip(" %％")
    top, _, bottom = number.partition("/")
    if not number or Fraction(bottom or 1) == 0:
        return None
    return Fraction(top) / Fraction(bottom or 1) / (100 if number != text.rstrip() else 1)


def conclusion_of(sentence: str, earlier: str) -> tuple[int, int]:
    """Return the span of a last sentence without 所以 and its like, and without its stop; empty if an earlier sentence
    concludes with other values. earlier: the text before the sentence.
    """
    lead = _LEADS.match(sentence)
    begin = 0 if lead is None else lead.end()
    end = len(sentence.rstrip(ENDS))
    return (begin, end) if begin or agrees(earlier, sentence[:end]) else (end, end)


def answering_weekday(sentence: str) -> tuple[int, int] | None:
    """Return the span of the day of the week that a sentence states: 那一天是周四; None if it states none."""
    lead = _LEADS.match(sentence)
    begin = 0 if lead is None else lead.end()
    stated = _WEEKDAY.fullmatch(sentence, begin, len(sentence.rstrip(ENDS)))
    return None if stated is None or not _is_plain(stated["head"]) else stated.span("day")


def obstacle(sentence: str, *, announced: bool) -> str:
    """Say why a sentence in Chinese states no quantity, as a clause: "it has 2 quantities (…)".

    Empty if it states one, judges the statement of the question, or is no sentence around a quantity. announced: a
    label such as 答： stands before it.
    """
    sentence = sentence.strip(ENDS)
    calculation = _CALCULATION.match(sentence)
    if calculation is not None and (begin := _conclusion(sentence)):
        conclusion = sentence[begin:]
        if stated_quantity(conclusion, announced=announced) and not stated_quantity(sentence, announced=announced):
            result = calculation["result"] + (calculation["unit"] or "")
            return f"its calculation gives {result}, and its conclusion is another: {conclusion}"
        sentence = conclusion
    words = _ANY_QUANTITY.sub("", sentence)
    if chinese_statement(sentence, announced=announced) or len(_HAN.findall(words)) < _MIN_HAN or judgement(sentence):
        return ""
    if (span := answering_quantity(sentence, announced=True)) is not None:
        if answering_quantity(sentence) is not None:
            value = sentence[slice(*span)]
            return f"its words before {value} make it a rate or a part of a whole, and not that of the reference"
        return "" if announced else "a sentence of this form is read behind 答： and 答案是 only"
    held = [quantity.group() for quantity in _ANY_QUANTITY.finditer(_MEANT.sub("", sentence))]
    if not held:
        return ""
    if len(held) > 1:
        return f"it has {len(held)} quantities ({', '.join(held)}), and which of them is the answer is not read"
    before, quantity, behind = sentence.partition(held[0])
    before = _LEADS.sub("", before, count=1)
    if word := limiting_word(before) or limiting_word(behind):
        if _HAN.search(word) is None:
            return f"it computes or compares: its sign {word} stands beside {quantity}"
        return f"its word {word} may deny, limit or suppose {quantity}"
    if behind:
        return f"what stands behind {quantity} may change it: {behind}"
    return f"before {quantity} stands no verb of having, measuring or doing that is known: {before}"


def _last_quantity(sentence: str, begin: int, end: int, *, answers: bool) -> tuple[int, int] | None:
    """Return the span of the quantity that ends a clause, if the words before it leave it standing.

    answers: a label or a word such as 所以 says that the clause is no premise, as 5小时行驶350千米 may be.
    """
    for start in starts_of(sentence, begin, end):
        body = sentence[start:end]
        ratio = RATIO.fullmatch(body)
        quantity = quantity_of(body)
        if ratio is None and quantity is None:
            continue
        before = sentence[begin:start]
        size = len(body) if quantity is None else quantity.size
        fraction = _FRACTION.fullmatch(body) is not None
        has_unit = fraction or (ratio is None and _VALUE_WITH_UNIT.search(body[:size]) is not None)
        noun = "" if quantity is None else quantity.noun
        counted = _COUNTED_SUBJECT.match(before) if answers else None
        if counted is not None and counted["unit"] not in body:
            before = counted["head"] + counted["rest"]
        if not before or limits(noun) or not _is_plain(before) or not (has_unit or _COPULA.search(before)):
            return None
        if (counted or _VALUE_NAMES.search(before)) and _SHIFTED.search(sentence, begin, start):
            return None
        leads = (_VERBS, _VALUE_NAMES, _COMPARED, _EACH, *((_OF_FRACTION,) if fraction else ()))
        if not any(lead.search(before) for lead in leads):
            return None
        if fraction and _OF_QUANTITY.search(before):
            return None
        if _OF_ANOTHER.search(before) and not (fraction and _OF_FRACTION.search(before)):
            return None
        return start, start + size
    return None


def _timed(sentence: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the span of the time in which a clause says that something can be done: 他3天能看完这本书."""
    for start in starts_of(sentence, begin, end):
        time = _TIME.match(sentence, start, end)
        if time is None:
            continue
        done = _DONE_IN_TIME.fullmatch(sentence, time.end(), end)
        if done is None and not is_end_of_deed(_WHEN_AND_WHO.sub("", sentence[time.end() : end], count=1)):
            continue
        before, deed = sentence[begin:start], _MEANT.sub("", done["deed"]) if done is not None else ""
        plain = (not before or _is_plain(before)) and _is_plain(deed) and "的" not in deed
        return time.span() if plain and not _OF_ANOTHER.search(before) else None
    return None


def _at_time_of_day(sentence: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the span of the time of day at which a clause says that something begins or ends: 电影9:40结束."""
    stated = _AT_TIME.fullmatch(sentence, begin, end)
    return None if stated is None else stated.span("time")


def _solutions(sentence: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the span of the equations, inequalities or point by which a clause states the solutions: 解集是x>3."""
    forms = STATING_FORMS if _SO.search(sentence, 0, begin) is None else (*STATING_FORMS, CONCLUDED)
    stated = next((match for form in forms if (match := form.fullmatch(sentence, begin, end)) is not None), None)
    return None if stated is None or not _is_plain(_OF_LIST.sub("", stated["head"])) else stated.span("list")


def _is_plain(words: str) -> bool:
    """Whether the words beside a quantity are one clause, with no second quantity and nothing that `limits` it."""
    if "答案" in words or limits(_CLASSIFIER_OF_ANIMALS.sub("", words)):
        return False
    words = _MEANT.sub("", _NUMBERS_OF.sub("", words))
    return re.search(rf"[，,。；;：:！!\n\d{NUMERAL_SIGNS}]", words) is None


def agrees(earlier: str, value: str) -> bool:
    """Whether no sentence of the text before the last one draws a conclusion with another value."""
    conclusions = [conclusion.group() for conclusion in _CONCLUDES.finditer(earlier)]
    values = _VALUES.findall(conclusions[-1]) if conclusions else []
    return not values or bool(set(values) & set(_VALUES.findall(value)))
