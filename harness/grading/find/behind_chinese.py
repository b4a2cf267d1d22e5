"""Sentences in Chinese behind an answer, and whether their words deny, correct or limit it. See `behind`."""

from __future__ import annotations

import re

from harness.grading.find.repeated import is_letter, plain

_CLOSES = re.compile(
    r"希望|如果?(?:你|您|还|大家)?(?:还)?(?:有|需要)|若(?:你|您|还)?(?:有|需要)|谢谢|感谢|祝|加油|欢迎"
    r"|以上(?:就)?是(?:本题|这道题|此题|题目|完整|详细|全部)?的?(?:解答|解题|解法|过程|步骤|分析|思路|详细|完整)"
)
_PASSED = re.compile(
    r"不难|不同|不等式|不变|不妨|不重复|无误|无理数|无限|无穷|未知|非负|非零|误差|公差|差[是为]|相差|没有余数"
    r"|有没有|能不能|是否"
)
_TURNS = re.compile(
    r"[误吗呢错漏忘悔疑惑猜惜糟唉哎哦啊呃咦噢嗯]|等等|等一|稍等|抱歉|对不起|其实|实际|事实上|应该|应当|sorry"
    r"|应[是为]|而是|但|然而|不过|却|改[为成]|[要应]改|修改"
    r"|可能|也许|或许|恐怕|似乎|好像|大概|重[新算做来]|还[要需得应]|想想|偏[大小]|太[大小多少]|参考|且慢|慢着"
    r"|再[算想看做来次检等]|更正|纠正|修正|订正|收回|撤回|作废|忽略|为准|才[是对]|问题\Z|有问题"
    r"|矛盾|舍去|增根|重复|两遍|要[加减乘除]|≠|[只仅]是|仅[为供]|估计|随便|[多少]算|[看说弄搞记]成|[看写说弄搞记][反掉]|换成|正确(?:的)?(?:答案|结果|值|得数)"
    r"|不[对好符足满成通行准正合可确知该够等妥算敢]|[没无未](?:解|把握|考虑|通过|有?答案|法确|满足|乘|除|加|减|算)|拿不|并非|与.{0,6}不|[看算]快|糊涂|粗心"
    r"|得数|混淆|当成|题目(?:[问要]|求)|步骤?[错反]|还有一种|[把将]它|[加减乘除补]上?[漏掉]|单位看"
)
"""Chinese signs and words of doubts, corrections and contrasts, and of denials that deny an answer."""

_NEGATES = re.compile("[不没非无未否勿]")
_OF_ANSWER = re.compile(
    r"(?:但|所以|因此)?(?:这|该|此|上[面述一]|以上|前面|刚才|答案|结果|结论|它|我|[不没非无未否勿]|经?[检验]|代入)"
)
"""How a clause begins that speaks of the answer, or of what led to it."""

_LIMITS = re.compile(
    r"(?:因为|由于|但|不过)?(?:[这此它](?:就|便)?[是为](?!因为|由于|一[个道种]|(?:最[终后]|正确|本题|所求|题目|我们|要求|需要|唯一|问题)*的?(?:答案|结果|解|值|数|结论)\Z)"
    r"|再[加减乘除补])"
)
"""How a clause begins that says what the answer is, unless it is the answer to the question, or goes on with it."""

_SPEAKS_OF_ANSWER = re.compile(
    r"[\d零〇一二两三四五六七八九十百千万]|上面|前面|刚才|之前|应该?是|应为|其实|更正|重新|算错|我错|不对"
)
_THEN = re.compile("先(.{0,20})再")
"""Two steps of the work: 先算每组的个数，再乘以组数. Elsewhere 再 adds a step behind the answer."""

_OTHER_LETTERS = re.compile(r"(?:选项)?(?:其[他余它](?:选项|答案|项)?|[A-J])(?![^，,]*(?:[正准]确|才|对\Z|选))")


def leaves_in_chinese(sentence: str, answer: str, *, is_far: bool = False, is_first: bool = False) -> bool:
    """Whether a sentence in Chinese behind an answer does not deny, doubt or correct it.

    is_far: it stands amid a long text, where only words of correction count. is_first: it stands directly behind the
    answer, where it may say what the answer is, or how it goes on.
    """
    if _CLOSES.match(sentence) and not _SPEAKS_OF_ANSWER.search(sentence):
        return True
    if sentence.endswith("?"):
        return False
    sentence = _PASSED.sub("", _THEN.sub(r"先\1", sentence))
    if _speaks_of_others(sentence, answer) and not _TURNS.search(sentence):
        return True
    clauses = [clause for clause in re.split("[，,；;：:]", sentence) if not _speaks_of_others(clause, answer)]
    if is_first and any(_LIMITS.match(clause) for clause in clauses):
        return False
    own = plain(answer)
    return not any(
        _TURNS.search(clause)
        or (not is_far and _NEGATES.search(clause) and (_OF_ANSWER.match(clause) or own in clause))
        for clause in clauses
    )


def closes_in_chinese(sentence: str) -> bool:
    """Whether a sentence in Chinese closes the reply: 希望对你有帮助."""
    return _CLOSES.match(sentence) is not None


def _speaks_of_others(clause: str, answer: str) -> bool:
    """Whether a Chinese clause speaks of other options than the letter of the answer: A和C都错."""
    if not is_letter(answer) or answer in clause:
        return False
    return _OTHER_LETTERS.match(clause.strip()) is not None
