"""Words that deny, doubt, suppose or correct a value, one list a language, and where they count.

    beside a box        words that touch it: "not", "cannot be", "is wrong", "or 13", "if n is even"
    a value in prose    any such word of its sentence, before or behind it
    behind an answer    words that take back what was said: "wait", "I made a mistake", 不对

A guard leaves an answer undecided; it never makes it wrong.
"""

from __future__ import annotations

from harness.core.patterns import regex

# Words of English, alternatives of a pattern, by what they do to a value.
_DENYING = (
    r"not|used\s+to|\w+n['’]t|cannot|never|neither|nor|wrong|incorrect|false|mistaken|impossible"
    r"|invalid|rejected|excluded"
)
_DOUBTING = (
    r"perhaps|maybe|might|may\s+be|possibly|could|guess\w*|unsure|unclear|apparently|supposedly"
    r"|claims?|claimed"
)
_SUPPOSING = (
    r"if|unless|whether|suppos\w+|assum\w+|provided|imagine|would(?<![Ii] would)|were\s+(?:it|the|we"
    r"|n)|had\s+(?:we|it|the)|except|in\s+case|as\s+long\s+as|given\s+that|hypothes[ie]s|in\s+(?:the|this|that)\s+\w*\s*case|at\s+best|should\s+the"
)
_BOUNDING = (
    r"at\s+(?:least|most)|(?:more|less|fewer|greater|larger|smaller|other|rather)\s+than|up\s+to"
    r"|between|remaining|twice|half"
)
_OTHERS = (
    r"some(?:one|body)|(?:students?|people|others)\s+(?:may|might|would|could|say|said|think|thought"
    r"|believe|claim)|(?:expected|reference|official)\s+(?:answer|result)"
)
_CORRECTING = (
    r"wait|oops|hmm+|hold\s+on|hang\s+on|sorry|apolog\w+|corrections?|corrected|mistakes?|mistaken|errors?"
    r"|typo|nope|ugh"
    r"|miscalculat\w+|miscount\w*|misread|overlooked|forgot(?:ten)?|missed|scratch\s+that|strike\s+that|never\s+mind"
    r"|take\s+(?:that|it)\s+back|retract|disregard|(?:ignore|forget|replace|change)\s+(?:that|this|it|the\s+above)"
    r"|doubt\w*|unsure|not\s+(?:so\s+|entirely\s+)?sure|instead|actually(?=,)|on\s+second\s+thought|rethink"
    r"|rather|more\s+precisely"
    r"|re-?(?:consider|check|comput|calculat|evaluat|examin|do\b|try|view)\w*|(?:try|think)\s+again"
    r"|start\s+over|slip|attempt|strictly|extraneous|no\s+solution|close,\s+but|almost|actual\s+value"
    r"|make\s+(?:it|that)|take\s+two"
    r"|(?:should|must|ought\s+to|would)\s+(?:have\s+been|be|have\s+added)|revised?|updated?|edit|guess"
    r"|premature|hasty|flawed"
    r"|contradict\w*|also\s+possible|i\s+mea?nt?|my\s+bad|we\s+(?:still\s+)?(?:must|need\s+to|have\s+to)|remains\s+to"
    r"|(?:only|just)\s+(?:an?\s+|part|half)|the\s+(?:real|true|new)\s+(?:answer|value|result)|off\s+by"
    r"|too\s+(?:large|small|big|low|high)"
)
# "That is wrong", "this step cannot work": what is spoken of, and the judgement.
_SUBJECT = (
    r"(?:that|this|it|which|above|answer|result|reasoning|value|calculation|computation|step|argument"
    r"|something|check|verification|earlier|previous|i)"
)
_JUDGED = (
    r"wrong\w*|incorrect|invalid|impossible|fails?|not\s+(?:right|correct|quite|true|valid|work|match)"
    r"|cannot|can['’]t|off|isn['’]t|doesn['’]t|does\s+not"
)
_CHINESE_GUARDS = (
    r"不是|不对|不能|不会|并非|不等于|错|可能(?!性)|也许|大概|如果|若|假设"
    r"|除非|设|猜|吗|是否|至少|至多|不超过|超过|不到|大于|小于|不足|约"
)
_CHINESE_CORRECTIONS = (
    r"等等|等一下|稍等|不太?对|(?<!是)不是|(?<!没)(?<!没有)错|抱歉|对不起|更正|纠正|修正|重新[想考审看]|再想|应为|应该[是为]|改[为成]|其实是|实际上是|漏[了算掉]|遗漏"
    r"|忘[了记]|失误|矛盾"
    r"|不符|不成立|不确定|可能(?!性)|也许|存疑|有问题|搞|作废|订正|准确地说|应当?是|才[对是]|还有一种|没有?考虑|猜|为准|要改|再加上|算快|舍去"
)

CONSEQUENCE = regex(r"(?i)\b(?:so|therefore|thus|hence)\b|所以|因此|故")
"""A word behind which a sentence states a consequence."""

# What leaves a value open, by where it stands: before a value in prose (`_SUPPOSES`), on either side (`_IN_PROSE`),
# in the sentence of a label, directly before a label, before and behind a box.
_SUPPOSES = regex(rf"(?i)\b(?:{_DOUBTING}|{_SUPPOSING}|{_OTHERS}|let|say|take|only)\b|{_CHINESE_GUARDS}")
_IN_PROSE = regex(rf"(?i)\b(?:{_DENYING}|{_DOUBTING}|{_SUPPOSING}|{_BOUNDING}|{_OTHERS}|let)\b|\?|？|{_CHINESE_GUARDS}")
_IN_LABELLED = regex(rf"(?i)\b(?:{_DOUBTING}|{_SUPPOSING}|{_OTHERS}|neither|never)\b|{_CHINESE_GUARDS}")
_BEFORE_LABEL = regex(r"(?i)\b(?:false|mistake\w*|wrong|incorrect|used\s+to|not)\b")
_BEFORE_BOX = regex(
    rf"\b(?:not|\w+n['’]t|cannot|never|neither|nor|minus|negative|either|except|exclude|{_DOUBTING}|(?:wrong"
    rf"|incorrect)(?:\s+\w+)?)"
    r"(?:\s+(?:would|be|get|equal|to|the|a|an|answer|is|have|value|of)){0,4}\s*[:$\\(\[]*\s*\Z|(?:不是|并非|不等于|不可能是"
    r"|也许是|可能是|大概是)\s*\$?\s*\Z"
)
_BEHIND_BOX = regex(
    r"(?i)[\s$*_)}\],，]*+(?:\\[)\]][\s*,，]*+)?(?:\\text\s*\{\s*+)?(?:"
    r"(?:(?:is|was|are|seems?|looks?|would\s+be|may\s+be|might\s+be|can|could)\s+)?(?:\w+ly\s+)?(?:not|n['’]t"
    r"|wrong|incorrect|false|impossible|invalid"
    r"|rejected|excluded|extraneous|ruled\s+out)\b|(?:isn|wasn|can|doesn)['’]t\b|(?:cannot|might)\b|(?:or"
    r"|though|but)\s+[^.\n]{0,40}\b(?:\d|[A-J]\b)"
    r"|or\s+(?:more|less|fewer)\b|(?:but\s+)?only\s+(?:if|when|for)\b|if(?!\s+and\s+only)\b|unless\b"
    r"|assuming\b|provided\b|或|是错|不对|不正确|是不|吗|[?？])"
)
_CHARS_BEFORE_BOX, _CHARS_BEHIND_BOX = 60, 80
"""How much text before and behind a box is searched for words that touch it, in characters."""

_CORRECTS = regex(
    rf"(?i)\b(?:{_CORRECTING})\b|\b{_SUBJECT}\b[^.\n]{{0,30}}?\b(?:{_JUDGED})\b|(?:\A|[\n.!?]\s{{0,4}})(?:no"
    rf"|not|well,\s+no)\b|{_CHINESE_CORRECTIONS}"
)


def is_guarded_in_prose(head: str, behind: str) -> bool:
    """Whether the sentence around a value without a label denies, doubts, supposes or bounds something.

    head: the words before the value; a denial before "so" there tells why: "There are not enough, so we need 5".
    """
    consequence = CONSEQUENCE.split(head)[-1]
    return _SUPPOSES.search(head) is not None or any(_IN_PROSE.search(words) for words in (consequence, behind))


def is_guarded_beside_label(head: str, behind: str = "") -> bool:
    """Whether the words before a label or behind its value doubt or suppose something, or those before it deny it."""
    return any(_IN_LABELLED.search(words) for words in (head, behind)) or _BEFORE_LABEL.search(head) is not None


def guards_box(text: str, start: int, end: int, lo: int, hi: int) -> bool:
    """Whether the words that touch the box text[start:end] deny or doubt it, or name another value beside it.

    text[lo:hi] is the final part of the reply; nothing outside of it is read.
    """
    # In lower case, as the pattern is: a search that ignores case takes four times as long. The pattern of the words
    # behind ignores case, for it is tried at one place only.
    before = text[max(lo, start - _CHARS_BEFORE_BOX) : start].lower()
    end_behind = min(hi, end + _CHARS_BEHIND_BOX)
    return _BEFORE_BOX.search(before) is not None or _BEHIND_BOX.match(text, end, end_behind) is not None


def correction(text: str, lo: int, hi: int) -> tuple[int, int] | None:
    """Return where text[lo:hi], which stands behind an answer, first has a word that takes back; None without one."""
    match = _CORRECTS.search(text, lo, hi)
    return None if match is None else match.span()
