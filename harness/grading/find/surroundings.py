r"""Sentences around the statement of an answer: "The answer is 12." states 12 only if they leave it standing.

A reply without a box states its answer in a sentence, and the sentences beside it may take the statement back, put it
under a condition, or give it to somebody else. Each of three parts must have a form of a closed list:

    before it in its sentence       leads ("so", "we conclude that"), reasons ("since …,"), a clause and "so"
    sentences before it             work: a subject or a verb of arithmetic at the start, and no word that supposes,
                                    guesses or quotes; "Let x be the number of …" defines a letter
    sentences behind it             no word that takes back, doubts or limits

Sentences before it are those of its paragraph, and the last one of the paragraph before if nothing else stands in its
own. A statement behind a mark that prompts ask for (`####`, "Final answer:", `<answer>`, a field of JSON) needs no
sentence before it, as a box does not.
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS
from harness.grading.find.sentences import QUANTITIES

MAX_CHARS = 1_200
"""The text is looked at this far on either side of a statement, in characters."""

_MAX_SENTENCES = 4
"""Number of sentences before a statement that are looked at."""

_STOP = re.compile(r"[.!?](?=[\s\"'”*)]|\Z)|\n|[。！？]")
_WORD = re.compile(r"[A-Za-zÀ-ÿА-я]+(?:['’][a-z]+)?")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_DIGIT = re.compile(r"[0-9=$]")
_MARKS = " \t\n*_#>`-–—•~$|\"“”'’()[]\\"

_SUPPOSES = names(
    "if unless when whenever suppose supposing supposed assume assuming assumes assumed assumption provided providing "
    "hypothetically imagine pretend conditional condition hypothesis otherwise would could might may should perhaps "
    "maybe possibly probably presumably seemingly apparently supposedly allegedly case scenario possibility "
    "approximation estimate rumor rumour reading guess guessing guessed doubt unsure sure confident uncertain "
    " ignore ignoring neglect neglecting disregard disregarding except instead were "
    "si wenn falls angenommen sei supongamos suponiendo supposons suppose se supponiamo supondo suponha если допустим "
    "пусть "
    "student students teacher tom's someone somebody nobody wrote writes claims claimed claim says said say "
    "believes believed thinks thought argues argued told tells according quote quoted quotes attempt attempts "
    "wrong incorrect incorrectly false mistaken flawed fake follows following below"
)
"""Words by which a sentence supposes, guesses or quotes what stands behind it."""

_OPENS_CONDITION = re.compile(
    r"(?i)(?:case|consider|as\s+long|so\s+long|given|under|were|had|should|for(?!\s+(?:each|every|all|both|any|example|instance)\b)|in\s+(?:the|this|that|a|case)|with|only|let)\b(?!['’]s)"
)
_DEFINES = re.compile(
    r"(?i)(?:now|first|so|and|then)?[\s,]*(?:let|suppose|say|assume)(?:\s+that)?\s+[$\\(]*[a-z](?:_\w)?[$\\)]*\s*"
    r"(?:be|is|equals?|denotes?|represents?|stands?\s+for|=)\s+(?:equal\s+to\s+)?(?:the|his|her|its|their|our|[a-z]+['’]s)\s+(?P<rest>.*)",
    re.DOTALL,
)
"""The definition of a letter: "Let x be the number of apples"."""

_DATUM = re.compile(r"(?i)(?:if|when|since)\s(?P<clause>[^,]*\d[^,]*),\s*(?P<main>[^,]*\d.*)", re.DOTALL)
_RELATED_LETTER = re.compile(r"(?<![A-Za-z\\'’])(?!(?:a|A|I)\b)[A-Za-z](?![A-Za-z'’])")

_FACTS = names("the each every all both there these its so then thus hence therefore")
_STEPS = names(
    "we so then thus hence therefore now next first firstly second secondly third finally since because also and by "
    "after using simplifying solving computing calculating adding "
    "subtracting multiplying dividing substituting expanding factoring rearranging combining counting plugging summing "
    "taking squaring integrating differentiating evaluating applying add subtract multiply divide compute calculate "
    "solve simplify expand factor rearrange combine count plug substitute sum take square integrate differentiate "
    "evaluate apply use recall note notice observe find determine write set start begin step solution answer "
    "explanation reasoning working proof let's wait no hmm ans q final "
)
"""First words of a sentence that tells a step of the work; `_FACTS`: of one that tells a fact."""

_LEAD = (
    r"so|therefore|thus|hence|then|now|and|finally|indeed|clearly|consequently|okay|ok|well|overall|altogether|yes|also|here|that|no|wait|actually|hmm|(?:(?:is\s+)?the\s+)?answer(?:\s+is)?|is"
    r"|in\s+(?:total|all|conclusion|summary|short|the\s+end)|as\s+a\s+result|to\s+(?:conclude|summarize|sum\s+up)"
    r"|(?:we|i|you|one)\s+(?:can\s+|now\s+|finally\s+|then\s+)*(?:get|have|find|found|see|know|obtain|conclude|think|believe|say|provide|report|box|state|write|give)(?:\s+that)?"
    r"|(?:this|that|it|which)\s+(?:means|shows|implies|gives|yields|makes|follows|is)(?:\s+us)?(?:\s+that)?"
    r"|(?:which|this)\s+(?:is\s+)?why|giving(?:\s+us)?|because|since|final|conclusion|result|solution|summary|∴|⇒|→|\\(?:therefore|implies|Rightarrow)(?![a-z])"
)
_ARTICLE = r"(?:(?:the|our|my|its|this|your|an?)\s+)?(?:(?:final|correct|right|exact|numerical)\s+)*"
# Possessive, so that leads which can be read in two ways do not double the work each.
_PREFIX = re.compile(rf"(?i)\s*+(?:(?:{_LEAD})(?![a-zA-Z])[\s,:—–-]*+)*+{_ARTICLE}")
_CONSEQUENCE = re.compile(
    r"(?i)[\s,;—–:-](?:so|therefore|thus|hence|because|which\s+(?:means|gives|makes|implies)(?:\s+that)?|giving|and)[\s,]"
)
_REASON = re.compile(
    r"(?i)\s*(?:since|because|as|after|by(?!\s+default)|from|using|finally|(?:when|if)\s+(?:rounded|simplified|written|expressed)|(?:add|subtract|multiply|divid|comput|calculat|simplify|substitut|expand|factor|rearrang|combin|count|solv|summ|tak|squar|apply|plugg|evaluat|integrat|differentiat|putt|work)ing)\b[^,:]*,"
)
_LABEL = re.compile(
    r"(?i)[\s*_#>-]*(?:final\s+answer|answer|conclusion|solution|result|summary|so|therefore|thus|hence|step\s+\d+|in\s+short)[\s*_]*:[\s*_]*"
)

_MARK = re.compile(
    r"(?i)\#{4}.*|<answer>.*|(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|solution)s?[\s*_]*(?:[:：=].*|\Z)|(?:final\s+answer)\b.*"
    r"|A\s*[:：]|(?:最终)?答案\s*[:：]|答\s*[:：]",
    re.DOTALL,
)
"""Marks of an answer that prompts ask for, at the start of a line or a sentence."""

_SUPPOSES_FIRST = re.compile(
    r"(?i)(?:assum\w*|suppos\w*|if|unless|when|provided|providing|ignor\w*|neglect\w*|given|under|were|had|should|without|consider\w*|case)\b"
)

_TAKES_BACK = re.compile(
    r"(?ix)(?: \A\W*(?:but|however|wait|actually|hmm+|no(?!\s+other\b)|nope|oops|sorry|correction|edit|update"
    r"|although|though|unless"
    r"|only|assuming|provided|apologies|strike|scratch|rather|instead|except|excepting|excluding|or|alternatively|otherwise|on\s+second)\b"
    r"| \b(?:not|n['’]t|never|hardly|un)\s*(?:\w+\s+)?"
    r"(?:sure|certain|right|correct|confident|true|valid|hold|final|the\s+answer|it)\b"
    r"| \bcannot\s+be\b | \bmy\s+(?:guess|mistake|error)\b | \bguess(?:ed|ing)?\b"
    r"| \b(?:unsure|uncertain|doubt\w*|mistaken|retract|recheck|reconsider|recount)\b"
    r"| (?<!common\ )\b(?:wrong|incorrect|false)\b | \bi\s+made\s+a | \bshould\s+(?:be|have)\b"
    r"| \bmight\b | \bmay\s+be\b | \bcould\s+be\b"
    r"| \b(?:this|that|it|which|the\s+answer|the\s+result|the\s+value)\s+(?:only\s+|also\s+)?"
    r"(?:assumes?|assumed|requires?|holds?|applies|is\s+valid|works|is\s+only|depends|presumes|supposes)\b"
    r"| \bassum(?:es|ed|ing)\b | \bonly\s+(?:if|when|for|holds|works|valid|in)\b | \bprovided\b | \bunless\b"
    r"| \bif\s+(?:and\s+only|[a-z]\b|the|we|not)"
    r"| \Aif\b(?!.*\b(?:questions?|help|ask|let|need)\b) | \bdisregard\b | \bignore\b )"
)
"""Words of a sentence behind a statement that take it back, doubt it, or limit it."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CHINESE_SUPPOSES = re.compile(
    r"如果|若|假设|假如|假定|设(?![^，,。]{0,12}(?:[a-zA-Z]|为))|令(?!\s*[$\\(]*[a-zA-Z])|当|除非|只要|要是|倘若|不考虑|忽略|可能|也许|大概|猜|有人|认为|学生|老师|同学|说|错|以下|如下|下面"
)
_CHINESE_TAKES_BACK = re.compile(
    r"不对|错|应该是|应为|但|不过|等等|更正|其实|如果|若|假设|除非|只有|前提|仅当|不确定|可能|也许|猜|抱歉|改正"
)


def is_left_standing(text: str, start: int, end: int, phrase: str) -> bool:
    """Whether the sentences around text[start:end], the statement of an answer, leave it standing.

    phrase: the words that announce the answer. Behind a mark that prompts ask for, only what follows takes it back.
    """
    if not _is_kept_behind(text, end):
        return False
    head = text[_sentence_start(text, start) : start].lstrip(_MARKS)
    if _MARK.fullmatch(f"{head}{phrase}".strip(_MARKS)) is not None:
        before = _sentences(text, max(0, start - MAX_CHARS), start - len(head))[-1:]
        return not any(map(_is_bare_hypothesis, before))
    return _has_plain_start(head) and follows_work(text, start)


def choice_stands(text: str, start: int, end: int) -> bool:
    """Whether the sentences around text[start:end], an option letter that a reply states, leave it standing."""
    begin = _sentence_start(text, start)
    head = text[begin:start].lstrip(_MARKS)
    if _CONDITION_OF_CHOICE.match(head) is not None and _CONSEQUENCE.search(head) is None:
        return False
    if any(_STARTS_AGAIN.match(sentence) for sentence in _sentences(text, end, min(len(text), end + MAX_CHARS))[:3]):
        return False
    return not any(map(_is_bare_hypothesis, _sentences(text, max(0, begin - MAX_CHARS), begin)[-1:]))


_CONDITION_OF_CHOICE = re.compile(
    r"(?i)(?:if|unless|assuming|suppose|supposing|provided|(?:a|the|another|one)\s+(?:student|friend|classmate)|some(?:one|body)|如果|若|假设|有人)"
)
_STARTS_AGAIN = re.compile(
    r"(?i)(?:wait|actually|hmm+|no\b[,.!]?\s+(?!other)|oops|sorry|correction|on\s+second|scratch|let\s+me\s+re|不对|等等|更正)"
)


def _is_bare_hypothesis(sentence: str) -> bool:
    """Whether a sentence supposes something and computes nothing: "Assume the coin is fair"."""
    return _SUPPOSES_FIRST.match(sentence) is not None and _DIGIT.search(sentence) is None


def _sentences(text: str, start: int, end: int) -> list[str]:
    """Return the sentences of text[start:end] that are not empty."""
    end = min(end, len(text))
    ends = [stop.end() for stop in _STOP.finditer(text, start, end)]
    parts = zip([start, *ends], [*ends, end], strict=True)
    return [part for first, last in parts if (part := text[first:last].strip(_MARKS))]


def _sentence_start(text: str, start: int) -> int:
    """Return where the sentence that holds position `start` begins."""
    first = max(0, start - MAX_CHARS)
    begin = max((stop.end() for stop in _STOP.finditer(text, first, start)), default=first)
    return begin if begin > first or not first else max(first, text.find(" ", first, start))


def _has_plain_start(head: str) -> bool:
    """Whether `head`, the words before a statement in its own sentence, only leads to it."""
    head = head.replace("，", ",")
    while (label := _LABEL.match(head)) is not None and label.end():
        head = head[label.end() :]
    if _CHINESE.search(head):
        return _CHINESE_SUPPOSES.search(head) is None
    if _PREFIX.fullmatch(head):
        return True
    consequence = None
    for consequence in _CONSEQUENCE.finditer(head):  # noqa: B007  only the last one is wanted
        pass
    if consequence is not None and _PREFIX.fullmatch(head[consequence.start() + 1 :]):
        return True
    reason = _REASON.match(head)
    return reason is not None and _PREFIX.fullmatch(head[reason.end() :]) is not None


def follows_work(text: str, start: int) -> bool:
    """Whether the sentences before a statement tell facts and steps of the work."""
    begin = _sentence_start(text, start)
    first = max(0, begin - MAX_CHARS)
    breaks = [match.end() for match in _PARAGRAPH.finditer(text, first, begin)]
    before = _sentences(text, breaks[-1] if breaks else first, begin)
    if not before and breaks:
        before = _sentences(text, breaks[-2] if len(breaks) > 1 else first, begin)[-1:]
    return all(map(_is_work, before[-_MAX_SENTENCES:]))


def _is_work(sentence: str) -> bool:
    """Whether a sentence before a statement tells a fact or a step of the work."""
    if _CHINESE.search(sentence):
        return _CHINESE_SUPPOSES.search(sentence) is None
    if (defined := _DEFINES.fullmatch(sentence)) is not None:
        sentence = defined["rest"]
        return _SUPPOSES.isdisjoint(word.lower() for word in _WORD.findall(sentence))
    if (datum := _DATUM.fullmatch(sentence)) is not None and _RELATED_LETTER.search(datum["clause"]) is None:
        sentence = datum["main"]  # "If he got 2 toys from each, that is 4 toys" repeats what the question gives
    words = [word.lower().replace("’", "'") for word in _WORD.findall(sentence)]
    if not words:
        return True
    if _OPENS_CONDITION.match(sentence) is not None or not _SUPPOSES.isdisjoint(words):
        return False
    if _DIGIT.search(sentence) is not None:
        return True
    # Without a number only a step of the work, or a fact about quantities: "Both sums are equal".
    return (
        words[0] in _STEPS
        or words[:2] == ["i", "apologize"]
        or (words[0] in _FACTS and not QUANTITIES.isdisjoint(_stems(words)))
    )


def _stems(words: list[str]) -> list[str]:
    """Return words in the singular and as they are."""
    return [*words, *(word.removesuffix("s") for word in words)]


def _is_kept_behind(text: str, end: int) -> bool:
    """Whether no sentence behind a statement takes it back, doubts it or limits it."""
    special = text.find("<|", end, end + MAX_CHARS)
    finish = special if special >= 0 else min(len(text), end + MAX_CHARS)
    stop = _STOP.search(text, end, finish)
    rest = stop.end() if stop is not None else finish
    if not _ends_statement(text[end:rest]):
        return False
    explained = False
    for sentence in _sentences(_EMPTY_BOX.sub("", text[rest:finish]), 0, finish - rest):
        pattern = _CHINESE_TAKES_BACK if _CHINESE.search(sentence) else _TAKES_BACK
        if pattern.search(sentence) is not None and not sentence.lower().startswith("i hope"):
            return False
        explained = explained or _EXPLAINS.match(sentence) is not None
        if not (explained or _CHINESE.search(sentence) or _CALCULATES.search(sentence) or not _SAYS.search(sentence)):
            return False
    return True


def _ends_statement(rest: str) -> bool:
    """Whether the rest of the sentence behind a value says of what it is, or gives a reason, and limits nothing."""
    if _FURTHER_VALUE.match(rest) is not None:
        return False
    reason = _REASON_BEHIND.search(rest)
    words = _WORD.findall((rest if reason is None else rest[: reason.start()]).lower())
    return FUNCTION_WORDS.isdisjoint(set(words) - _BEHIND_VALUE)


_REASON_BEHIND = re.compile(r"(?i)\b(?:because|since|which|as|so|hence|therefore|that\s+(?:meet|satisf)\w*)\b|[,，(]")
_BEHIND_VALUE = names(
    "of in to the a an and for per each from on at all such their his her its both our is this that we it not"
)
"""Function words behind a value that limit it to nothing: "12 apples for the whole class"."""

_FURTHER_VALUE = re.compile(r"\s*[;；]\s*\S*\d")
_EXPLAINS = re.compile(
    r"(?i)(?:(?:this|that|it)(?:\s+is|['’]s)?\s+(?:because|since|follows|completes|comes|can|agrees|matches|gives|uses|also)|because|since|explanation"
    r"|reason|reasoning|check|checking|verif\w+|to\s+(?:see|check|verify|get|find|do|obtain|solve)|we|here['’]?s?\s+(?:is|how|why)|note|proof|indeed"
    r"|step|steps|working|work|solution|calculation|first|i\s+(?:hope|used|added|multiplied|computed|calculated|got|found|divided|subtracted|checked)|hope|thanks?|thank|let\s+me\s+know|please|feel\s+free"
    r"|a\s+common|no\s+other|q\.?e\.?d|good\s+luck|have\s+a|happy|great|done|if\s+you|is\s+there|would\s+you|do\s+you|you\s+can|user|assistant|im_start|end|final|answer|the\s+(?:final\s+|correct\s+)?answer\s+is|so|therefore|thus|hence|as)\b"
)
"""First words of a sentence behind a statement that explains it, checks it or closes the reply."""

_EMPTY_BOX = re.compile(r"\\f?boxed?\{[\s.?…]*\}")
_SAYS = re.compile(r"[A-Za-z0-9]")
_CALCULATES = re.compile(r"=|≈")
