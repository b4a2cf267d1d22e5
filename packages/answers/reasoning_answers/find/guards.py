"""Words that deny, doubt, suppose or correct a value, one list per language, and where they count.

    next to a box       words that touch it: "not", "cannot be", "is wrong", "or 13", "if n is even"
    a value in prose    any such word of its sentence, before or after it
    after an answer     words that retract what was said: "wait", "I made a mistake", 不对

A guard leaves an answer undecided; it never makes it wrong.
"""

from __future__ import annotations

from reasoning_answers.patterns import regex

# English words, as alternatives of a pattern, grouped by their effect on a value.
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
    r"wait|actually|hmm+|oops|no(?=\s*[,.;:!—–-]|\s+wait)|nope|sorry|apologies|i\s+apologi[sz]e|corrections?|corrected|hold\s+on|hang\s+on"
    r"|scratch\s+that|on\s+(?:second\s+thought|review|reflection)|looking\s+back|unfortunately|close,\s+but|take\s+two|attempt\s+2"
    r"|(?:please\s+)?(?:disregard|ignore|change\s+(?:it|that|this))|my\s+(?:mistake|bad|error)|the\s+(?:true|real|actual)\s+\w+\s+is|(?:i(?:['’]m|\s+am)\s+)?not\s+(?:\w+\s+)?(?:sure|quite|right)"
    r"|(?:i|we)\s+(?:made\s+an?\s+(?:\w+\s+)?(?:mistake|error|slip)|was\s+wrong|mis(?:read|c\w+)|forgot|missed|rushed|used\s+the\s+wrong"
    r"|(?:need\s+to|must|should)\s+re\w+|found\s+an?\s+(?:mistake|error))"
    r"|(?:let\s+me|let['’]s)\s+(?:re-?(?:consider|do|comput|calculat|think|check)\w*|correct|fix|try\s+again)"
    r"|(?:that|this|it|(?:the|my)\s+(?:above\s+|true\s+|real\s+)?(?:answer|result|value|calculation|step))(?:['’]s)?\s+(?:\w+\s+){0,2}?"
    r"(?:wrong|incorrect|invalid|premature|off|not\s+(?:right|correct|quite)|can(?:no|['’])t(?:\s+be)?|should\s+(?:be|have\s+been)"
    r"|does\s+not\s+(?:satisfy|work|hold|fit)|has\s+an?\s+(?:error|mistake))"
)
_CHINESE_GUARDS = (
    r"不是|不对|不能|不会|并非|不等于|错|可能(?!性)|也许|大概|如果|若|假设"
    r"|除非|设|猜|吗|是否|至少|至多|不超过|超过|不到|大于|小于|不足|约"
)
_CHINESE_CORRECTIONS = (
    r"(?!其[余他它])[^。！？\n，,；：:]{0,5}?(?:等等|等一下|稍等|不太?对|(?<!没有)(?<!没)(?:[算搞弄写看]错|错了)|(?<!话)(?<!法)是错误|抱歉|对不起|更正|纠正|修正|订正"
    r"|再想|应为|应改|应该[是为]|作废|舍去|矛盾|不符|不成立|改为|为准|不可能|准确地说|没有考虑|才[对是]|重新[想考审])"
)

CONSEQUENCE = regex(r"(?i)\b(?:so|therefore|thus|hence)\b|所以|因此|故")
"""A word after which a sentence states a consequence."""

# What leaves a value open, by position: before a value in prose (`_SUPPOSES`), on either side (`_IN_PROSE`),
# in the sentence of a label, directly before a label, before and after a box.
_SUPPOSES = regex(rf"(?i)\b(?:{_DOUBTING}|{_SUPPOSING}|{_OTHERS}|let|say|take|only)\b|{_CHINESE_GUARDS}")
_IN_PROSE = regex(rf"(?i)\b(?:{_DENYING}|{_DOUBTING}|{_SUPPOSING}|{_BOUNDING}|{_OTHERS}|let)\b|\?|？|{_CHINESE_GUARDS}")
_IN_LABELED = regex(rf"(?i)\b(?:{_DOUBTING}|{_SUPPOSING}|{_OTHERS}|neither|never)\b|{_CHINESE_GUARDS}")
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
_DENIES = regex(
    r"(?i)[\s$*_)}\]]*+(?:\\[)\]][\s*]*+)?(?:[.,;:!。，；：—–-]+\s*+|[(\[]\s*+)?(?:(?:but|and|however|though|yet|no),?\s+)?"
    r"(?:(?:which|that|this|it|the\s+(?:answer|result|value|box)|das|dies|eso|esto|isto|isso|ciò)"
    r"(?:['’]s|\s+(?:is|was|seems|looks|appears|turns\s+out|proves|would\s+be|must\s+be|ist|es|é|è))(?:\s+to\s+be)?\s+|c['’]est\s+)?"
    r"(?:(?:\w+ly|also|of\s+course|quite|just|however|still)\s+)*"
    r"(?:wrong|incorrect|false|untrue|mistaken|erroneous|invalid|impossible|inadmissible|absurd|extraneous|inconsistent|rejected"
    r"|nonsense|falsch|faux|falso|incorrecto|errado|sbagliato|an?\s+(?:\w+\s+)?(?:mistake|error|contradiction)"
    r"|not\s+(?:\w+ly\s+)?(?:right|correct|true|valid|possible|allowed|what\s+(?:was|is)\s+asked|(?:the|an?)\s+(?:\w+\s+)?(?:answer|solution|result))"
    r"|(?:(?:which|that|this|it)\s+)?(?:can(?:no|['’])t|could\s*n['’]t)\s+be\s+(?:right|correct|true|the\s+answer))"
    r"\s*(?:[.!,;:)\]\n。]|\Z)"
)
"""A clause directly after an answer that denies it: ", which is false.", "(wrong)", ". That is not the answer."."""
_CHARS_OF_DENIAL = 160
"""Number of characters after an answer that are searched for such a clause."""

_CHARS_BEFORE_BOX, _CHARS_BEHIND_BOX = 60, 80
"""Number of characters before and after a box that are searched for words that touch it."""

_CORRECTS = regex(
    r"(?i)(?:\A\W{0,20}|[.!?。！？\n]['\"’”)\]}$\\*_]{0,4}\s\W{0,8}|[。！？])(?:(?:but|oh|and|so|well|ah|however|although)[,\s]\s*)?"
    rf"(?P<words>(?:{_CORRECTING})\b)|(?:\A|[。！？\n，,；：:、}}])(?P<chinese>{_CHINESE_CORRECTIONS})"
)
"""A sentence that begins with a correction, or a correction directly after the answer."""


def is_guarded_in_prose(head: str, behind: str) -> bool:
    """Whether the sentence around a value without a label denies, doubts, supposes or limits something.

    head: the words before the value; a denial before "so" gives the reason: "There are not enough, so we need 5".
    """
    consequence = CONSEQUENCE.split(head)[-1]
    return _SUPPOSES.search(head) is not None or any(_IN_PROSE.search(words) for words in (consequence, behind))


def is_guarded_beside_label(head: str, behind: str = "") -> bool:
    """Whether the words before a label or after its value doubt or suppose something, or the words before deny it."""
    return any(_IN_LABELED.search(words) for words in (head, behind)) or _BEFORE_LABEL.search(head) is not None


def guards_box(text: str, start: int, end: int, lo: int, hi: int) -> bool:
    """Whether the words that touch the box text[start:end] deny or doubt it, or name another value as well.

    text[lo:hi] is the final part of the reply; nothing outside it is read.
    """
    # In lower case, like the pattern: a case-insensitive search takes four times as long. The pattern of the words
    # after it is case-insensitive, since it is tried at one position only.
    before = text[max(lo, start - _CHARS_BEFORE_BOX) : start].lower()
    end_behind = min(hi, end + _CHARS_BEHIND_BOX)
    return _BEFORE_BOX.search(before) is not None or _BEHIND_BOX.match(text, end, end_behind) is not None


def correction(text: str, lo: int, hi: int) -> tuple[int, int] | None:
    """Return where text[lo:hi], after an answer, denies it or has a sentence that begins with words that retract it, or
    None.
    """
    if (denial := _DENIES.match(text, lo, min(hi, lo + _CHARS_OF_DENIAL))) is not None:
        return denial.span()
    match = _CORRECTS.search(text[lo:hi])
    return None if match is None else (lo + match.start(match.lastgroup or 0), lo + match.end())
