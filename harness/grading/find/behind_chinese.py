"""Sentences in Chinese behind an answer, and whether their words deny, correct or limit it. See `behind`.

Four kinds of sentences hold words of doubt and leave the answer all the same:

    a denied fault                    没有问题 · 没发现错误 · 毫无矛盾; not 除了单位都没有问题, 没错吧
    a repeated check that agrees      再算一次，…，和前面一样; not 再算一次。 or 再算一次，得60，正确 behind 50
    what the question asks for        因为题目要求的是最大值 behind an option; only 所以选C may follow
    a question to the reader          学会了吗？ · 需要我再讲一遍吗？ · 为什么呢？; not one that speaks of
                                      the answer, of a value or of a fault: 你觉得对吗？
"""

from __future__ import annotations

import re

from harness.grading.find.explanation import CONTRAST, contrasts_work
from harness.grading.find.repeated import is_letter, plain
from harness.grading.find.whole_clause import is_judgement, judged_in

_CLOSES = re.compile(
    r"希望|如果?(?:你|您|还|大家)?(?:还)?(?:有|需要)|若(?:你|您|还)?(?:有|需要)|谢谢|感谢|祝|加油|欢迎"
    r"|以上(?:就)?是(?:本题|这道题|此题|题目|完整|详细|全部)?的?(?:解答|解题|解法|过程|步骤|分析|思路|详细|完整)"
)
_PASSED = re.compile(
    r"不难|不同|不等式|不变|不妨|不重复|无误|无理数|无限|无穷|未知|非负|非零|误差|公差|差[是为]|相差|没有余数"
    r"|有没有|能不能|是否|可能性(?=[是为等=＝])"
)
_TURNS = re.compile(
    r"[误吗呢错漏忘悔疑惑猜惜糟唉哎哦啊呃咦噢嗯]|等等|等一|稍等|抱歉|对不起|其实|实际|事实上|应该|应当|sorry"
    r"|应[是为]|而是|但|然而|不过|却|改[为成]|[要应]改|修改"
    r"|可能|也许|或许|恐怕|似乎|好像|大概|重[新算做来]|还[要需得应]|想想|偏[大小]|太[大小多少]|参考|且慢|慢着"
    r"|再[算想看做来次检等验核查]|对不上|更正|纠正|修正|订正|收回|撤回|作废|忽略|为准|才[是对]|问题\Z|有问题|问题不是"
    r"|矛盾|舍去|增根|重复|两遍|要[加减乘除]|≠|[只仅]是|仅[为供]|估计|随便|[多少]算|[看说弄搞记]成|[看写说弄搞记][反掉]|换成|正确(?:的)?(?:答案|结果|值|得数)"
    r"|不[对好符足满成通行准正合可确知该够等妥算敢]|[没无未](?:解|把握|考虑|通过|有?答案|法确|满足|乘|除|加|减|算)|拿不|并非|与.{0,6}不|[看算]快|糊涂|粗心"
    r"|或者?(?:不|并[不非]|没)|得数|混淆|当成|题目(?:[问要]|求)|步骤?[错反]|还有一种|[把将]它|[加减乘除补]上?[漏掉]|单位看"
)
"""Chinese signs and words of doubts, corrections and contrasts, and of denials that deny an answer."""

_NEGATES = re.compile("[不没非无未否勿]")
_FAULT = "问题|错误|差错|偏差|毛病|矛盾|遗漏|疏漏|漏洞|不妥|疑问|错|[算写看]错|漏掉|出错"
_NO_FAULT = re.compile(
    r"(?<![不非没无未否])(?:并|也|都|完全|丝毫|毫|全)*(?:没有?|无|未|不)再?"
    r"(?:发现|看到|找到|出现|存在|出|任何|什么|一点|一处|一个|犯|丝毫)*(?:计算|书写|单位|数值|上|的)*"
    rf"(?:{_FAULT})(?![的地得一在吗吧么嘛])"
)
"""A denied fault, which confirms the answer: 没有问题, 没发现任何错误, 毫无矛盾."""

_HALF_DENIED = re.compile(
    "[除只仅但如若希愿才难岂怎谁哪第]|[并是]非|不是|部分|基本|大[体致概]|表面|看起来|看上去|前[面一二两三几]|[吧吗么嘛]"
)
_EXCEPTS = re.compile("除[了去开此]|[以之]外")
"""`_HALF_DENIED`, `_EXCEPTS`: words by which a denied fault leaves another one, or is doubted or supposed."""

_AGREES = re.compile(
    r"(?<![不没未无非])(?:一样|一致|相同|相符|吻合|正确|无误|成立|对得上|相等|符合|是对的)|同样的?(?:结果|答案|得数)"
)
_AGAIN = re.compile(
    "再(?:一次|次|来)?[算检看验核查]|重新?(?:验算|检查|检验|核对|计算|算|验)"
    "|(?<![不没未])(?:符合|满足|合乎)了?题目?(?:的)?要求"
)
"""`_AGREES`, `_AGAIN`: the outcome of a check, and words by which it is announced."""

_RESULT = re.compile("(?:得到?了?|(?:结果|答案|得数)[是为])(?P<value>[^，,；;：:]{1,30})")
"""A clause that states what a repeated check came to."""

_CHOICE_OF_VERB = re.compile(r"(\w{1,2})不\1|有没有|是否|能否|可否")
_ANOTHER_EXERCISE = re.compile("再(?:看|做|来|试|练|出|举|讲)(?=.{0,8}(?:题(?!目)|例|练习))")
_TO_READER = re.compile(
    r"你|您|大家|同学|朋友|孩子|我(?:再|来|换|继续|详细|帮|为)|[懂会想要]|明白|理解|掌握|清楚|需要|简单|容易|有趣|有意思"
    r"|神奇|巧妙|好玩|疑问"
)
_ASKS_REASON = re.compile(
    "(?:那么?|这是)?(?:为什么|为何|(?:怎么|如何|怎样)(?:得出?|得到|想到?|算出?|求出?|推出?)来?)(?:是|得到|得出)?(?:这个|这样)?的?"
    "(?:结果|答案)?(?:的|来的)?呢?\\?"
)
_ABOUT_ANSWER = re.compile(
    r"[\d零〇二两三四五六七八九十百千万半]|[加减乘除错误漏忘对真确准疑改反符才]|答案|结果|结论|得数|数字?值|觉得|认为|以为"
    r"|看法|同意|赞成|单位|条件|步骤?[写做]|(?<!什么)(?<!别的)(?<!其他)(?<!这类)(?<!任何)问题|怎么会|为什么|合理|可靠|合适"
    r"|可能|应该|难道|其实|[这那它][样就是个]*(?:行|可以|合|好|够)"
)
"""Words of a question that speaks of the answer, of a value or of a fault."""

_PARTICLES = re.compile("[吗呢啊哦呀嘛]")
_METHOD = re.compile(
    r"(?:因为|所以)?(?:这|以上|上面|此)(?:[就便也]?是|便)?"
    r"[这本此该上面述道题目问类种结果答案计算解推导全部完整详细整个的我们具体主要常用求它是怎么得到出来]*"
    r"(?:解法|做法|算法|方法|思路|过程|步骤|来历|由来|来源|道理|原因|理由|依据|根据|关键|推导|解答|解析|分析|计算)"
)
"""A clause that names the method or the reason, and so no value: 这就是这道题的解法."""

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
    r"[\d零〇一二两三四五六七八九十百千万错]|上面|前面|刚才|之前|应该?是|应为|其实|更正|重新|算错|我错|不对"
)
_THEN = re.compile("先(.{0,20})再")
"""Two steps of the work: 先算每组的个数，再乘以组数. Elsewhere 再 adds a step behind the answer."""

_REASON_OF_QUESTION = re.compile("(?:这是)?(?:因为|由于)(?:本|这道?|该)?题目?(?:要求|[要所]?问)")
"""How a clause begins that gives what the question asks for as the reason of an option: 因为题目要求的是最大值."""

_CONCLUDES = re.compile("所以|因此|故|只有|应?选")
"""How a clause may go on behind such a reason; what else stands there may turn against the option."""

_OTHER_LETTERS = re.compile(r"(?:选项)?(?:其[他余它](?:选项|答案|项)?|[A-J])(?![^，,]*(?:[正准]确|才|对\Z|选|问题))")


def leaves_in_chinese(
    sentence: str, answer: str, *, is_far: bool = False, is_first: bool = False, is_work: bool = False
) -> bool:
    """Whether a sentence in Chinese behind an answer does not deny, doubt or correct it.

    is_far: it stands amid a long text, where only words of correction count. is_first: it stands directly behind the
    answer, where it may say what the answer is, or how it goes on. is_work: it stands in a section that explains the
    answer, where a contrast may be one of the work (`explanation`).
    """
    if _CLOSES.match(sentence) and not _SPEAKS_OF_ANSWER.search(sentence):
        return True
    if sentence.endswith("?"):
        return _asks_reader(sentence)
    sentence = _without_confirmations(sentence, answer)
    sentence = _PASSED.sub("", _THEN.sub(r"先\1", sentence))
    if _speaks_of_others(sentence, answer) and not _TURNS.search(sentence):
        return True
    clauses = [clause for clause in re.split("[，,；;：:]", sentence) if not _speaks_of_others(clause, answer)]
    if is_first and any(_LIMITS.match(clause) and not _METHOD.fullmatch(clause) for clause in clauses):
        return False
    if is_judgement(answer):  # 这句话是错误的 says 错误 again, or is compared with it
        clauses = [clause for clause in clauses if not judged_in(clause)]
    own = plain(answer)
    if is_work:
        is_value = not is_judgement(answer) and not is_letter(answer)
        clauses = [clause for clause in clauses if not _is_contrast_of_work(clause, own, is_value=is_value)]
    if is_letter(answer) and (nonblank := [clause for clause in clauses if clause.strip()]):
        reason = _REASON_OF_QUESTION.match(nonblank[0])
        if reason is not None:
            return _only_concludes([nonblank[0][reason.end() :], *nonblank[1:]], own)
    return not any(
        _TURNS.search(clause)
        or (not is_far and _NEGATES.search(clause) and (_OF_ANSWER.match(clause) or own in clause))
        for clause in clauses
    )


def _is_contrast_of_work(clause: str, own: str, *, is_value: bool) -> bool:
    """Whether a clause is a contrast of the work and has no other word of `_TURNS`."""
    return contrasts_work(clause, own, is_value=is_value) and not _TURNS.search(CONTRAST.sub("", clause, count=1))


def _only_concludes(clauses: list[str], own: str) -> bool:
    """Whether the clauses behind the first one, which gives a reason, only conclude the letter `own` again."""
    concludes = all(_CONCLUDES.match(clause) and own in plain(clause) for clause in clauses[1:])
    return concludes and not any(map(_TURNS.search, clauses))


def _without_confirmations(sentence: str, answer: str) -> str:
    """Return a sentence without its denied faults; also without the words that announce a check, if a clause says that
    it agrees and none has another result.
    """
    if _EXCEPTS.search(sentence):
        return sentence
    parts = re.split("([，,；;：:])", sentence)
    parts[::2] = [clause if _HALF_DENIED.search(clause) else _NO_FAULT.sub("无误", clause) for clause in parts[::2]]
    own, clauses, bare = plain(answer), parts[::2], "".join(parts)
    results = [result["value"] for clause in clauses for result in _RESULT.finditer(clause)]
    differs = any(own not in value and not _AGREES.search(value) for value in results)
    return bare if differs or not any(map(_AGREES.search, clauses)) else _AGAIN.sub("", bare)


def _asks_reader(question: str) -> bool:
    """Whether a question asks the reader something, or for the reason, and speaks of nothing that may be wrong."""
    if _ASKS_REASON.fullmatch(question):
        return True
    bare = _CHOICE_OF_VERB.sub("", _ANOTHER_EXERCISE.sub("", question))
    is_open = _ABOUT_ANSWER.search(bare) or _TURNS.search(_PARTICLES.sub("", bare)) or _NEGATES.search(bare)
    return _TO_READER.search(question) is not None and not is_open


def closes_in_chinese(sentence: str) -> bool:
    """Whether a sentence in Chinese closes the reply: 希望对你有帮助."""
    return _CLOSES.match(sentence) is not None


def _speaks_of_others(clause: str, answer: str) -> bool:
    """Whether a Chinese clause speaks of other options than the letter of the answer: A和C都错."""
    if not is_letter(answer) or answer in clause:
        return False
    return _OTHER_LETTERS.match(clause.strip()) is not None
