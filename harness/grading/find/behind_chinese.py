"""Sentences in Chinese behind an answer, and whether they leave it standing. See `behind`."""

from __future__ import annotations

import re

from harness.grading.find.chinese import CLASSIFIER, UNIT
from harness.grading.find.repeated import NUMBER, digits_of, is_letter

_CLOSES = re.compile(
    r"希望|如果?(?:你|您|还|大家)?(?:还)?(?:有|需要)|若(?:你|您|还)?(?:有|需要)|谢谢|感谢|祝|加油|欢迎"
    r"|以上(?:就)?是(?:本题|这道题|此题|题目|完整|详细|全部)?的?(?:解答|解题|解法|过程|步骤|分析|思路|详细|完整)"
)
_EXPLAINS = re.compile(
    r"因(?!此|而)|由于|由|这是因为|理由|原因|解析|解释|解[：:]|说明|分析|过程|步骤|验证|验算|检验|检查|经检验|代入"
    r"|其中|即|也就是|换句话说|注|备注|提示|所以"
    r"|因此|故|综上|这里|这意味着|这表示|根据|按照|计算|列式|解法|方法|另外|此外|同理|同样|从而|于是|则|当|令|设"
    r"|记|又|首先|先|然后|接着|最后|我们|已知"
    r"|共|一共|总共|第[一二三四五]步|步骤|易知|易得|可得|可知|显然|对于?|在|以"
)
"""First words of a Chinese sentence that gives a reason, checks the answer or shows its work."""

_GIVES_NO_ANSWER = re.compile(
    r"因为|由于|因(?!此|而)|这是因为|理由|原因|验证|验算|检验|检查|代入|其中|注|备注|说明|这里|这意味着|这表示"
    r"|解析|解释|分析|过程|步骤"
)
_MAX_NAME_SIGNS = 20
"""Longest unit, or text of an option, behind an answer in Chinese, in characters."""

_ASSERTS = re.compile(r"所以|因此|结果|正确|准确|换|即|刚|上|算|得|题目|这|此|与|随")
"""Words with which a Chinese clause begins that is no name of a unit or an option."""

_CONFIRMS = re.compile(
    r"(?:经?检验|验证|结果|答案|等式|这个?(?:结果|答案)|该(?:结果|答案)|不难看出|可见|显然|此)?[^。]{0,20}?(?:成立"
    r"|合理|正确|无误|符合题意|满足条件|吻合|一致|相符)\Z"
)
_PASSED = re.compile(
    r"不难|不同|不等式|不变|不妨|不重复|无误|无理数|无限|无穷|未知|非负|非零|误差|公差|差[是为]|相差|没有余数"
    r"|有没有|能不能|是否"
)
_TURNS = re.compile(
    r"[不没非无未否勿误吗呢错漏忘改悔疑惑猜惜糟唉哎哦啊呃咦]|等等|等一|稍等|抱歉|对不起|其实|实际|事实上|应该|应当"
    r"|应[是为]|而是|但|然而|不过|却"
    r"|可能|也许|或许|恐怕|似乎|好像|大概|重[新算做来]|还[要需得应]|想想|偏[大小]|太[大小多少]|参考|且慢|慢着"
    r"|再[算想看做来次检加减乘除]|更正|纠正|修正|订正|收回|撤回|作废|忽略|为准|才[是对]|问题\Z|有问题"
    r"|矛盾|舍去|增根|重复|两遍|要[加减乘除]|≠|[只仅]是|仅[为供]|估计|随便|[多少]算|[看写说弄搞记][反成掉]|换成|正确(?:的)?(?:答案|结果|值|得数)"
)
"""Chinese signs and words of denials, doubts, corrections and contrasts."""

_SPEAKS_OF_ANSWER = re.compile(
    r"[\d零〇一二两三四五六七八九十百千万]|上面|前面|刚才|之前|应该?是|应为|其实|更正|重新|算错|我错|不对"
)
_COMPUTES = re.compile(r"[\d(（$\\][^=＝]*[=＝]")
_VALUES = re.compile(rf"(?P<value>{NUMBER}|[零〇一二两三四五六七八九十百千万亿]+)")
_LETTERS = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z])")
_ENDS_IN_VALUE = re.compile(
    rf"(?<![\d,])(?P<value>{NUMBER}"
    rf"|[零〇一二两三四五六七八九十百千万亿]{{1,24}})[\s%％$*]*[\u3400-\u9fffA-Za-z²³/°℃]{{0,4}}\Z"
)
_THEN = re.compile("先(.{0,20})再")
"""Two steps of the work: 先算每组的个数，再乘以组数. Elsewhere 再 adds a step behind the answer."""

_UNIT_OR_CLASSIFIER = re.compile(rf"\A(?:{UNIT}|{CLASSIFIER})")
_OTHER_LETTERS = re.compile(
    r"(?:其[他余它](?:选项|答案|项)?|(?P<letters>[A-J](?:\s*[、和及与,，]?\s*[A-J])*))(?:两?[项个]"
    r"|选项)?[均都也是为的]*(?:错|不|有误|排除|干扰|无关)[^A-J，,；;才应]*"
)


def leaves_in_chinese(sentence: str, answer: str, *, is_rest: bool) -> bool:
    """Whether a sentence in Chinese behind an answer cannot correct it."""
    if _CLOSES.match(sentence) and not _SPEAKS_OF_ANSWER.search(sentence):
        return True
    if sentence.endswith("?"):
        return False
    sentence = _THEN.sub(r"先\1", sentence)
    clauses = [clause for clause in re.split("[，,]", sentence) if not _speaks_of_others(clause, answer)]
    if any(_TURNS.search(_PASSED.sub("", clause)) is not None for clause in clauses):
        return False
    if is_rest and clauses and not _speaks_of_others(sentence.partition("，")[0], answer):
        # The unit of the answer, or the text of its option.
        first = _UNIT_OR_CLASSIFIER.sub("", clauses[0])
        is_name = (
            len(first) <= _MAX_NAME_SIGNS
            and not _GIVES_NO_ANSWER.match(first)
            and not (_ASSERTS.match(first) or _ASSERTS.match(clauses[0]))
            and _ends_in_answer(first, answer)
        )
        if not is_name:
            return _is_said_of_right("，".join(clauses), answer)
        return all(_is_said_of_right(clause, answer) for clause in clauses[1:])
    return not clauses or _is_said_of_right("，".join(clauses), answer)


def _is_said_of_right(sentence: str, answer: str) -> bool:
    """Whether a sentence in Chinese, or a clause of one, confirms or explains an answer and ends in no other value."""
    closes = _CLOSES.match(sentence) is not None and _SPEAKS_OF_ANSWER.search(sentence) is None
    if closes or _GIVES_NO_ANSWER.match(sentence):
        return True
    if not _ends_in_answer(sentence, answer):
        return False
    return any(form.match(sentence) for form in (_CONFIRMS, _EXPLAINS, _COMPUTES))


def _ends_in_answer(sentence: str, answer: str) -> bool:
    """Whether a sentence in Chinese ends in no value, or in one of the answer's."""
    if is_letter(answer):
        letters = _LETTERS.findall(sentence)
        return not letters or answer in letters
    ends_in = _ENDS_IN_VALUE.search(sentence)
    values = [match["value"] for match in _VALUES.finditer(answer)]
    return ends_in is None or not values or digits_of(ends_in["value"]) in map(digits_of, values)


def _speaks_of_others(clause: str, answer: str) -> bool:
    """Whether a Chinese clause speaks of other options than the letter of the answer: A和C都错."""
    others = _OTHER_LETTERS.fullmatch(clause.strip())
    return others is not None and is_letter(answer) and answer not in (others["letters"] or "") and len(clause) > 1


def turns_in_chinese(sentence: str) -> bool:
    """Whether a sentence has Chinese signs of denials, doubts or corrections."""
    return _TURNS.search(_PASSED.sub("", sentence)) is not None


def closes_in_chinese(sentence: str) -> bool:
    """Whether a sentence in Chinese closes the reply: 希望对你有帮助."""
    return _CLOSES.match(sentence) is not None
