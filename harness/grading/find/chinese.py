"""Sentences in Chinese that state an answer without a box: LEAD 主语 有/是 QUANTITY, as in 所以水池里有3700升水.

The quantity must reach to the end of its sentence, and be one of a closed list of forms:

    a value, perhaps with a unit                        3700 · 3700升 · 四分之三 · 60千米/时
    a value, a classifier and what was counted          5个苹果, whose noun is compared with the reference's
    a value, a unit and a noun of `_MEASURED`           3700升水 is 3700升
    a spelling of its own of `grammar.spellings`        三点半 · 十二元五角 · 两米五厘米 · 下午5:35

What follows a unit and is none of these (多, 左右, 以上, a part of another quantity) leaves the sentence without a
statement: 一共十二元多 does not state 十二元.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.answers.grammar.numerals import number_in_words
from harness.answers.grammar.spellings import is_own_spelling
from harness.answers.grammar.tree import names
from harness.answers.grammar.units import is_counted
from harness.answers.words import JUDGING_SIGN, words_of

NUMERAL_SIGNS = "零〇一二两三四五六七八九十百千万亿"
_NUMERAL = rf"[{NUMERAL_SIGNS}]{{1,16}}"
# Lazy, so that 十二千米 is 12 千米.
_VALUE = (
    rf"(?:[¥￥$]?[-−]?\d[\d,]*(?:\.\d+)?(?:/\d+)?\s*[百千万亿%％π]?|负?(?:百分之)?{_NUMERAL}?(?:分之{_NUMERAL}"
    rf"|点[零〇一二三四五六七八九]{{1,12}})?|半)"
    r"\s*"
)
UNIT = (
    r"(?:平方|立方)?(?:千米|公里|分米|厘米|毫米|公分|米|千克|公斤|毫克|克|吨|毫升|公升|升|分钟|个?小时|时(?![间刻候段])|秒钟?|天"
    r"|个月|周|年)"
    r"|千?瓦时|度电|[千兆]瓦|毫安|[千毫]伏|[千兆]帕|千焦|千欧|牛顿|焦耳|瓦特|安培|伏特|欧姆|赫兹|[牛焦瓦安伏欧帕赫](?![\u3400-\u9fff])"
    r"|摄氏度|华氏度|℃|℉|美元|欧元|元钱|块钱|元|块|角|度|公顷|分(?!之)|[A-Za-zΩ°μ]{1,4}[²³]?|[㎡㎥㎝㎜㎞㎢㎤㎏㎎]"
)
CLASSIFIER = (
    "[岁个個人名位种次只支本枝张条棵颗粒辆台套件页层间头匹块份组对双把根朵袋箱瓶杯碗盒道题点艘座户家班行列局场枚笔句步"
    "桶罐壶缸筐篮篓捆串束盘碟锅盆勺匙车船卷册篇幅幢株堆叠摞群批顿趟遍滴片管节首封]"
)
"""`UNIT`, `CLASSIFIER`: patterns of what may follow a number in a Chinese sentence."""

_QUANTITY = re.compile(
    rf"(?P<value>{_VALUE})"
    rf"(?:(?P<unit>(?:{UNIT})(?:[/每](?:{UNIT}|[时秒]))?)(?P<measured>[\u3400-\u9fff]{{0,4}})"
    rf"|(?P<counted>{CLASSIFIER}[\u3400-\u9fff]{{0,7}}))?"
)
_MEASURED = names(
    "水 油 食用油 汽油 柴油 酒 酒精 牛奶 果汁 饮料 酱油 醋 药水 药液 盐水 糖水 溶液 糖 盐 药 米 大米 面粉 小麦 "
    "稻谷 玉米 大豆 粮食 "
    "花生 棉花 茶叶 蜂蜜 菜 蔬菜 白菜 水果 苹果 梨 桃 橘子 葡萄 西瓜 香蕉 土豆 肉 猪肉 牛肉 鱼 鸡蛋 饲料 种子 化肥 "
    "肥料 农药 煤 "
    "钢 钢材 铁 铁丝 铜 铝 金 银 电 电线 绳子 布 彩带 丝带 木头 木材 木料 纸 沙子 沙 石子 水泥 混凝土 土 泥土 货物 "
    "垃圾 钱 "
    "时间 路 路程 的水 的油 的路 的路程 的时间"
)
"""Nouns of what has a volume, a mass, a length, a price or a duration. Behind a unit they do not change the value."""

_VERBS_BEHIND = names(
    "参加 报名 出席 到场 相遇 获奖 及格 合格 完成 做完 写完 读完 看完 用完 吃完 喝完 修完 运完 走完 行完 跑完 到达"
)
"""Verbs that may end a sentence behind its quantity and do not change it: 有十五人参加, 需5天完成."""

_TAKES_PART = re.compile(rf"(?:报名)?参加了?(?:(?![{NUMERAL_SIGNS}\d的和与及或])[\u3400-\u9fff]){{1,6}}")
"""An event in which persons take part, behind their number: 有24人参加合唱."""

_HAS = (
    r"(?:一共|总共|共|还|只)?(?:有|剩下?|用了?|(?:需要|应该|应|要)付|需要?|要|付|花了?|花费|相距|参加|卖了|买了|行了"
    r"|走了|得到|分到|分得|今年|重|高|长|宽)了?|一共|总共|共"
)
LEAD = r"(?:∴|所以|因此|因而|故|于是|从而|可知|可得|综上(?:所述)?|那么|这样|最后|最终|答(?!案))\s*[，,：:、]?\s*"
_HEAD = re.compile(
    rf"""(?x) \s* (?P<lead> {LEAD} )*
    (?P<subject> [^\s，,。；;：:？?！!\d]{{0,20}}? )
    (?: (?P<counts> {_HAS} ) | (?P<is> 是|为|等于|[=＝]|占(?:[\u3400-\u9fff]{{1,8}}的)?) )? \s* """
)
_LINK = re.compile(r"有|是|为|等于|[=＝]|的|剩下?|一共|总共|共|用了?|需要?|付|花了?|长|重|高|宽|了|[：:]|\A")
"""Words of `_HEAD` behind which a quantity may begin that begins with no number: 时间是下午5:35."""

_BEGINS = re.compile(rf"[¥￥$]?[-−]?\d|负?[{NUMERAL_SIGNS}]|半")
ABOUT = "(?<![节公预签违契条合制简集履婚失赴邀])约(?![会定束分数简去请见谈])"
_NEAR = rf"(?<![最附邻临靠远新亲相就])近(?![视郊来期日代义路处亲景海年照况旁邻体的])|{ABOUT}"
"""近 and 约 as words for "about", before a quantity or its verb: not as a part of 近视, 最近, 附近, 约会, 约分, 节约.

The neighbours are those of the common compounds; in a rarer one the sign leaves an answer undecided.
"""

_CLAUSE_WORDS = re.compile(
    r"[如若假设当令除非不没未无莫勿至超过或许曾原每第吗呢差能可会再才仅该需检剩余其他另说称认猜据听问谁]|大概"
    rf"|最[多少]|{_NEAR}"
)
"""Chinese characters of conditions, denials, bounds, guesses and questions."""

_PASSED = re.compile(
    r"当[天时日地年月]|相当|应当|可能[的性]|余下|会(?=[\u3400-\u9fff]{1,6}的)|[机班晚]会|会[员议场]|不同的?|不等式|未知数|无理数|非[负零]|半[径圆夜]|对称|节约|约会|公?约数|原来(?=[有长重高])|[参增]加|减少|加工"
    r"|加速|乘积|被?[除减]数|假分数|余[弦数]|反比例|反函数|相反数|倒数|几何|条件概率|比例|计算结果|[本该此]题|这道?题|剩余|分别|超市|假期"
    r"|考试|测试|运动会|设计|纵坐标|之[后和差积商比]"
)
"""Words that hold a sign of `_LIMITS` and limit nothing."""

_LIMITING_SIGNS = (
    "不没未无莫勿否非别"  # negations
    "如若假设令当除既纵倘虽但却"  # conditions and contrasts
    "至超或许曾恐怕疑估猜似会够只仅才再另余其"  # bounds, degrees, doubts, parts
    "吗呢么何谁什怎哪几"  # questions
    "说称认据听问告诉传声感觉谈想希愿预推判"  # speech and thought
    "错误漏反倒仿题检证算乘减加半之例请让试险"  # mistakes, steps, operations
)
_LIMITS = re.compile(
    rf"[{_LIMITING_SIGNS}<>＜＞≤≥≠≈～~→+×÷*^\\]"
    rf"|{_NEAR}|要是|可能|也许|大[概致体]|差不[多离]|差一?点|以[为内外上下]|[大小多少高低早晚轻重长短快慢]于|[最顶][多少]"
    r"|最(?=\Z|[高低长短大小快慢](?:\Z|\d))"
    r"|多少|[原本]来|原先|已知|条件|难道|好像|貌似|万一|起码|充其量|几乎|简直|勉强|即[使便]|目[标的]|看[作成样上来起]|当成|[写抄记][成为]|写作(?![业文])|觉得"
    r"|接下来|下面|首先|先[把将求]|然后|考虑|继续|左右|上下|还差|而是|要求|结论|一旦|一度|八成|多半|没准|反正|\A[按照依]|偶尔|(?:表面|理论|事实|实际|原则|名义|基本)上|粗略|商量"
    r"|(?:平方|立方)(?!分?[米厘毫千])|(?<![笔日])记(?!者)|(?<!演)讲(?!座)"
)
"""Closed classes of Chinese words by which a sentence limits what it says: negations, adverbs of doubt and degree,
conjunctions of condition and contrast, verbs of speech, thought and computing, question words.
"""

_HEDGES = re.compile(
    r"大[约致体]|大概|约[莫略摸]|粗[略估]|近[似乎]|估|差不多|(?<!等)可能(?!性)|(?<![^大高小]的)可能性|也许|或许|恐怕|似乎|好像|貌似|看[起上][来去]|多半|猜"
)
"""Adverbs and verbs of approximation and guessing; the 可能 of 等可能的结果 and of 正面朝上的可能性 is none."""

_ROUNDED = re.compile(rf"(?:大?约|大概|近似?值?)[是为有等于重长高宽]{{0,3}}\s*[-−]?[\d{NUMERAL_SIGNS}]")
"""A quantity behind the word that rounds it."""

_OPERATIONS = re.compile("除以|乘以?|加上?|减去?|近似|另一")
"""Words of `_LIMITS` that belong to a name: 甲数除以乙数的商是7."""

_VERBS = re.compile("[的是有在被对错为等太很]")
"""Chinese characters which say that the words behind a unit are no noun."""

_SUBJECT_ALLOWED = re.compile(r"(?<!其)[他她]们?|最大|最小|可能的|不同的?|能|可以?")
_JOINS = re.compile("[和与及或且]")
_NAME_OF_ANSWER = re.compile(r"(?:本题|这题|此题|题目|问题)?的?(?:正确|最终|最后)?的?答案")
_CONDITION = re.compile(r"如果|若|假设|假如|设|令|当|除非|只要|要是")
_IN_WORDS = re.compile(
    rf"(?<![{NUMERAL_SIGNS}点])(?!一{CLASSIFIER}){_NUMERAL}(?:分之{_NUMERAL}(?:点{_NUMERAL})?|(?:点{_NUMERAL})?(?:{UNIT}"
    rf"|{CLASSIFIER}))"
)
"""A quantity in words. 一个 and 一步 count nothing as a rule."""

_STATES_A_VALUE = re.compile(rf"[\d{NUMERAL_SIGNS}]\s*(?:{UNIT}|{CLASSIFIER})")
ENDS = " \t\n。.！!*_`$"
_SIGNS_IN_WORDS = f"{NUMERAL_SIGNS}半负"
_INSIDE_NUMBERS = f"{NUMERAL_SIGNS}0123456789.,点负-−/:："
"""Characters that go on with a number: no quantity begins behind one of them."""

_MAX_QUANTITY_CHARS = 40
"""Longest quantity at the end of a sentence, in characters."""

_JUDGEMENT = "不正确|正确|错误|不对|对|错"
_JUDGED = re.compile(
    rf"""(?x) (?:所以|因此|故|综上(?:所述)?)? [，,：:]?\s*
    (?: (?:这|该|此|本|上述|题[中目]的?|原题?的?)(?:一?句话|个?说法|种说法|个?命题|个?判断|道?题|个?结论)
        (?:的说法)?\s*是?
      | 判断\s*(?:[：:]|是|为) )
    \s*\$?(?P<open>[(（])?(?P<word> (?:{_JUDGEMENT})的? | {JUDGING_SIGN} )(?(open)[)）])\$?
    (?:[，,]\s*(?:因为|由于)[^。！？]{{0,200}})? """
)
"""A sentence that judges the statement of the question: 所以这句话是正确的."""

_WORD = rf"(?P<word>(?:{_JUDGEMENT})的?|{JUDGING_SIGN})"
_MARK = rf"[(（【\[]\s*{_WORD}\s*[)）】\]]"
_MARKED = re.compile(rf"(?:.*[。.．！!])?\s*{_MARK}")
"""A judgement in brackets, alone or behind the statement that it judges: 7是42的因数。（√）."""

_JUDGES = re.compile(rf"{_WORD}\$?\s*(?:[。.．！!，,；;\n]|\Z)")
_WITH_REASON = re.compile(
    r"(?P<sentence>[^。！!\n]{1,120})(?:[。！!\n*_\s]++|(?<!不对)[，,]\s*)(?:(?:这是)?因为|由于|∵|(?:理由|原因)[是：:])(?P<reason>.*)",
    re.DOTALL,
)
"""A first sentence, and the reason that follows it. 不对 before a comma may take back what stood before the reply."""

_ENDS_IN_JUDGEMENT = re.compile(rf"(?:{_JUDGEMENT})的?\Z|{JUDGING_SIGN}\$?\Z")
_DENIES = "不是的?|不对的?|不正确|否|错误?的?"
_REPLY = rf"(?:{_DENIES}|是的?|对的?|正确的?|没错)"
_REPLIED = re.compile(rf"(?P<word>{_REPLY})[，,](?P<clause>[^，,。；;：:？?！!\n]{{2,40}})")
"""A sentence that answers a yes-or-no question and says why: 是的，正方形是长方形."""

_OPENS_WITH_REPLY = re.compile(rf"\s*(?:{LEAD})*(?P<word>{_REPLY})(?=[\s，,。；;：:！!*]|\Z)")
_DENIAL = re.compile("不是|不|没有?")
_OF_SPEAKERS = re.compile(r"[你我您咱]|大家|[先再来]|有[时些的]|部分|某些|一般|通常|基本")
"""Words behind 是的 and 不是 that speak of the talk itself, or of some cases only: 对，我们看题目; 对，有时成立."""


_LISTED = re.compile(r"\d\s*[、,，和]\s*\d")
"""Items of a list; 共2个 behind them counts the items."""


class _Quantity(NamedTuple):
    """A quantity at the end of a sentence.

    size: number of its characters, without a noun of `_MEASURED`. noun: what was counted behind a classifier. is_plain:
    only a value in digits, perhaps with a unit.
    """

    size: int
    noun: str = ""
    is_plain: bool = False


def chinese_statement(sentence: str, *, announced: bool = False) -> tuple[int, int] | None:
    """Return the span of the answer that a Chinese sentence states, else None.

    所以水池里有3700升水 states `3700升`; a name with 是 or 为 stays, since names are compared: 面积为25平方厘米.
    announced: 答： stands before the sentence.
    """
    if _CONDITION.search(sentence) or sentence.rstrip()[-1:] in "?？":
        return None
    end = len(sentence.rstrip(ENDS))
    clause = max(sentence.rfind("，"), sentence.rfind(",")) + 1
    for begin in (0, clause) if 0 < clause < end else (0,):
        for start in starts_of(sentence, begin, end):
            quantity = quantity_of(sentence[start:end])
            head = _HEAD.fullmatch(sentence, begin, start) if quantity is not None else None
            if quantity is None or head is None:
                continue
            earlier = sentence[:begin]
            if begin and (limits(earlier) or _LISTED.search(earlier) or not _concludes(head, earlier)):
                continue
            if not _states(head, quantity, announced):
                return None
            return (head.start("subject") if _is_named(head, quantity) else start), start + quantity.size
    return None


def starts_of(sentence: str, begin: int, end: int) -> list[int]:
    """Return where a quantity up to the end of the sentence may begin: at a number, or behind a verb."""
    first = max(begin, end - _MAX_QUANTITY_CHARS)
    at_numbers = {match.start() for match in _BEGINS.finditer(sentence, first, end)}
    behind_links = {match.end() for match in _LINK.finditer(sentence, first, end)}
    return [
        position
        for position in sorted(at_numbers | behind_links | {begin})
        if first <= position < end and (position == 0 or sentence[position - 1] not in _INSIDE_NUMBERS)
    ]


def quantity_of(body: str) -> _Quantity | None:
    """Read the end of a sentence as one quantity of the forms at the top of the module; None if it is none."""
    if is_own_spelling(body):
        return _Quantity(len(body))
    match = _QUANTITY.fullmatch(body)
    if match is None:
        return None
    value = match["value"].strip()
    in_words = value[0] in _SIGNS_IN_WORDS
    if in_words and value != "半" and number_in_words(value) is None:
        return None
    if (counted := match["counted"]) is not None:
        if counted[1:] in _VERBS_BEHIND or (_TAKES_PART.fullmatch(counted, 1) is not None and not limits(counted)):
            return _Quantity(len(body) - len(counted) + 1)
        is_noun = is_counted(counted) and _VERBS.search(counted, 1) is None
        return _Quantity(len(body), counted[1:]) if is_noun else None
    if (measured := match["measured"] or "") and measured not in _MEASURED and measured not in _VERBS_BEHIND:
        # 块 is money, and else counts: 300块方砖.
        is_noun = match["unit"] == "块" and measured != "钱" and _VERBS.search(measured) is None
        return _Quantity(len(body), measured) if is_noun and is_counted("个" + measured) else None
    return _Quantity(len(body) - len(measured), is_plain=not in_words)


def is_end_of_deed(verb: str) -> bool:
    """Whether a verb may end a sentence behind a time without changing the time: 6天完成, 3小时后相遇."""
    return verb in _VERBS_BEHIND


def _concludes(head: re.Match[str], earlier: str) -> bool:
    """Whether the last clause of a sentence states the answer of the whole: it draws a conclusion or names a total, or
    it says how many there are and no clause before it does.
    """
    counts = head["counts"]
    if head["lead"] is not None:
        return True
    if counts is not None and counts[0] in "一总共":
        return _NAMED_VALUE.fullmatch(earlier) is None
    return counts is not None and _STATES_A_VALUE.search(earlier) is None


_NAMED_VALUE = re.compile(rf"[^，,。；;：:\d{NUMERAL_SIGNS}]+[是为][^，,。；;：:]*[，,]\s*")
"""One clause with the value of a quantity. A total behind it has no second addend, and is another quantity."""


def _states(head: re.Match[str], quantity: _Quantity, announced: bool) -> bool:
    """Whether the words before a quantity state it: a subject and a verb, none of conditions, denials and guesses."""
    subject, counts = head["subject"], head["counts"] or ""
    if (subject or quantity.noun) and not (counts or head["is"]):
        return False
    if "答案" in subject and _NAME_OF_ANSWER.fullmatch(subject) is None:
        return False  # 小明的答案, 答案的一半
    if limits(subject):
        return False
    words = _SUBJECT_ALLOWED.sub("", subject) + quantity.noun
    if announced or head["lead"] is not None or counts[:1] in ("一", "总", "共"):
        words = words.replace("每", "")
    elif counts == "有":
        return False  # 题目中有36个学生 may repeat the question
    return _CLAUSE_WORDS.search(words) is None


def limits(words: str) -> bool:
    """Whether the words beside a quantity in Chinese deny, limit or suppose it, or compute with it."""
    return _LIMITS.search(_PASSED.sub("", words)) is not None


def hedges(words: str) -> bool:
    """Whether words before the statement of an answer say that it is rough or a guess: 粗略地看，答案是12.

    Behind such a word no quantity stands that it rounds: π大约是3.14，所以答案是12 says nothing about 12.
    """
    return _HEDGES.search(_ROUNDED.sub("", words)) is not None


def limiting_word(words: str) -> str:
    """Return the word by which words beside a quantity limit it (see `limits`); empty if they do not."""
    word = _LIMITS.search(_PASSED.sub("", words))
    return "" if word is None else word.group()


def is_limited(sentence: str) -> bool:
    """Whether the name before the last 是, 为 or 等于 of a sentence limits what stands behind it: 小明说差是12."""
    copula = max(sentence.rfind(verb) for verb in ("是", "为", "等于"))
    return copula > 0 and limits(_OPERATIONS.sub("", sentence[:copula]))


def _is_named(head: re.Match[str], quantity: _Quantity) -> bool:
    """Whether the name of a quantity belongs to the answer, since names are compared: 面积为25平方厘米."""
    verb = head["is"]
    if verb is None or verb[0] == "占" or _JOINS.search(head["subject"]) is not None:
        return False  # 两个分数的和 would be read as a list
    return quantity.is_plain and not head["subject"].isascii()


def judgement(sentence: str, earlier: str = "") -> tuple[int, int] | None:
    """Return the span of 正确 or 错误 in a sentence that judges the statement of the question; None for any other.

    earlier: the text before it. Beside another judgement, one in brackets may be of another statement.
    """
    text = sentence.rstrip(ENDS).lstrip()
    offset = len(sentence) - len(sentence.lstrip())
    judged = _JUDGED.fullmatch(text)
    if judged is None and (judged := _MARKED.fullmatch(text)) is not None:
        before = earlier + text[: judged.start("word") - 1]
        if re.search(_MARK, before) is not None or _judges_otherwise(before, judged["word"]):
            return None
    return None if judged is None else (offset + judged.start("word"), offset + judged.end("word"))


def judgement_with_reason(text: str) -> tuple[int, int] | None:
    """Return the span of the judgement that is the first sentence of a text, if the rest is its reason and judges
    nothing else: 错 of 这句话是错的。因为2是质数，也是偶数。; None for any other text.
    """
    parts = _WITH_REASON.match(text)
    if parts is None:
        return None
    sentence = parts["sentence"].rstrip(ENDS).lstrip(ENDS)
    begin = text.index(sentence)
    span = judgement(sentence) or ((0, len(sentence)) if re.fullmatch(_WORD, sentence) else None)
    if span is None or _judges_otherwise(parts["reason"], sentence[slice(*span)]):
        return None
    return begin + span[0], begin + span[1]


def _judges_otherwise(text: str, word: str) -> bool:
    """Whether a clause of a text ends in another judgement than `word`."""
    return any(words_of(judged["word"]) != words_of(word) for judged in _JUDGES.finditer(text))


def yes_or_no(sentence: str) -> tuple[int, int] | None:
    """Return the span of the word by which a sentence answers a yes-or-no question; None if it has another form.

    The clause behind the word must agree with it: behind 是的 it denies and limits nothing, behind 不是 it denies once.
    """
    reply = _REPLIED.fullmatch(sentence.rstrip(ENDS))
    if reply is None or _OF_SPEAKERS.search(reply["clause"]) is not None:
        return None
    clause, denials = reply["clause"], 0
    if re.fullmatch(_DENIES, reply["word"]) is not None:
        clause, denials = _DENIAL.subn("", clause)
        if denials != 1:
            return None
    return None if limits(clause.replace("整除", "")) else reply.span("word")


def obstacle_of_reply(sentence: str) -> str:
    """Say why a sentence that begins with a word such as 是的 or 不是 answers no yes-or-no question, as a clause.

    Empty for other sentences.
    """
    reply = _OPENS_WITH_REPLY.match(sentence)
    if reply is None:
        return ""
    return f"{reply['word']} is read in a box, or if the reply is this one sentence and its clause agrees with it"


def unstated_value(sentence: str, kind: str) -> tuple[int, int] | None:
    """Return the span of the last quantity in words that a sentence of no known form holds; None if it holds none.

    If the kind of the answer is "text", a word such as 是的 at the beginning of the sentence counts first, then a
    judgement at its end.
    """
    if kind == "text":
        if (reply := _OPENS_WITH_REPLY.match(sentence)) is not None:
            return reply.span("word")
        if (word := _ENDS_IN_JUDGEMENT.search(sentence, 0, len(sentence.rstrip(ENDS)))) is not None:
            return word.span()
    quantities = list(_IN_WORDS.finditer(sentence))
    return quantities[-1].span() if quantities else None


def is_condition_in_chinese(sentence: str) -> bool:
    """Whether a sentence supposes something: 设x=36, 如果有8个苹果."""
    return _CONDITION.search(sentence) is not None
