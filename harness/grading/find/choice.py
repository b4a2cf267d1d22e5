r"""Multiple choice in prose: the letter that a response gives as its answer.

A stated answer ("the answer is B", "故选 B", "that leaves B") beats any mark, and the last statement counts. Without a
statement, a letter counts that is the last line, or the only letter that is marked as an option. Several letters are
no choice.

A statement is a phrase (`_STATED`, `_CALLED_RIGHT`) with the letters that belong to it. It is dropped if the words
beside it deny it, if a letter is beyond the last option, or if what follows makes the letter an article ("A car") or a
variable ("B = 3"). It leaves the choice undecided if its own words are not those of a statement (`_PLAIN`), or if the
sentence supposes something: "the answer would be B if it were fair" chooses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.answers.grammar.tree import names
from harness.answers.letters import letter_of, letters_of
from harness.grading.find.chinese import hedges

_MARKUP = re.compile(
    r"\*+|__+|`+|\$+|[\"“”{}]|</?[a-zA-Z][^<>\n]{0,30}>|\\[,;:!()\[\] ]"
    r"|\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|boxed|fbox|mbox|left|right)(?![A-Za-z])"
)
_LETTER = r"(?:[(（\[【]\s*[A-Za-z]\s*[)）\]】]|(?<![A-Za-z0-9_\\])[A-Za-z](?![A-Za-z0-9'’_^]))"
_AND = r"\s*(?:[/&]|\bor\b|\band\b|和|或者?|还是|以?及|与|,\s*(?:or|and)\b)\s*(?:(?:maybe|perhaps|possibly|also)\s+)?"
_COMMA = r"\s*[,，、;]\s*"
_RUN = r"(?<![A-Za-z0-9_\\])(?-i:[A-H]{2,8})(?![A-Za-z0-9'’_^])"
_LETTERS = (
    rf"(?P<letters>[(（\[【]?\s*{_RUN}\s*[)）\]】]?|{_LETTER}(?:{_AND}{_LETTER}|{_COMMA}{_LETTER}"
    r"(?!\s+(?:is|are|was|has|does|gives|would|fails|ignores|can|cannot|because)\b))*)"
)
_INTRO = (
    r"(?:\s*(?:therefore|thus|clearly|likely|probably|most|definitely|simply|indeed|option|choice|answer|letter"
    r"|the|only"
    r"|i\s+(?:think|believe)|it(?:\s+is|'s)|seems?|to\s+be|that|selected|选项|is|[:：]))*\s*"
)
_STATED = re.compile(
    rf"""(?xi)
    (?: \banswer\s+(?={_LETTER})
      | \b(?:answers?|choice|option|selection|response|letter|conclusion|antwort|respuesta|r[ée]ponse|risposta
            |resposta|ответ|(?:choices|options|statements)(?=\s+are\b))\b
        (?:(?!\bnot\b|n't|\bcannot\b|\bneither\b)[^\n.]){{0,40}}?
        (?:\bis|\bare|\bbe|\bwas|\bes|\best|\bist|\bè|\bé|[:=：]|\s[-–—]|->|→)
      | \b(?:choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|g(?:o|oing|oes)\s+with|went\s+with|settled?\s+on
            |opt(?:ed)?\s+for|leav(?:es|ing)(?:\s+(?:us|me)(?:\s+with)?)?|left\s+with|guess(?:ing)?|say|match(?:es
              |ing)?
            |corresponds?\s+to|points?\s+to|(?:therefore|thus|hence|so),?)(?=\W)
      | \b(?:correct|final)\s*[:：]
      | 正确的?是 | 故选 | 应选 | 因此选 | 所以选 | (?<![不别勿])选择? | 正?确?(?:答案|选项)[】\]]?应?该?[是为]?
      | (?:正解|答え)は? | 정답[은이]? )
    {_INTRO} {_LETTERS}
    """
)
_CALLED_RIGHT = re.compile(
    rf"""(?xi) (?:\b(?:option|choice|answer|makes|making)\s+)? {_LETTERS} [).]? \s+
    (?:(?:is|are|must\s+be|seems)\s+)? (?:therefore\s+|thus\s+|clearly\s+)? (?:the\s+)? (?:only\s+|most\s+)?
    (?:(?:correct|right|best|valid)\b(?!\s+if\b)|answer\b|(?:option|choice|one)\s+(?:that|which)\b)"""
)
_CALLED_RIGHT_IN_CHINESE = re.compile(rf"{_LETTERS}\s*(?:选项)?\s*是?正确")
_CALLED_THE_ONLY_ONE = re.compile(
    rf"(?i){_LETTERS}\s+is\s+the\s+only\s+(?:possible\s+|remaining\s+)?(?:option|choice|answer|one)\b"
)
_ONLY_ONE_LEFT = re.compile(
    rf"(?i)\bonly\s+(?:(?:option|choice)\s+)?{_LETTERS}\s+"
    r"(?:satisfies|works|fits|matches|meets|remains|is\s+(?:left|possible|consistent))\b"
)
_WEAKLY_STATED = re.compile(rf"(?i)\b(?:option|choice|statement)\s+{_LETTERS}")
_ENDS = re.compile(r"[)\]\s]*(?:[.,:;!。，：；！—–-]|\Z)")
"""The end of a clause behind a letter. A letter before a verb ("option G confuses …") is discussed, not chosen."""

_STATEMENTS = (_STATED, _CALLED_RIGHT, _CALLED_RIGHT_IN_CHINESE, _CALLED_THE_ONLY_ONE, _ONLY_ONE_LEFT)
_DENIED_BEFORE = re.compile(
    r"(?i)\b(?:(?:incorrect|wrong|false|not|cannot|\w+n['’]t|never|other|eliminated|rejected|worst|unlikely"
    r"|least\s+\w+)"
    r"|(?:all|any|every|each|none|no)(?:\s?\w+)?\s+(?:but|except(?:\s+for)?))\s+(?:\w+\s+)?$"
)
_DENIED_BEHIND = re.compile(
    r"(?i)\s*(?:(?:is|are|was|looks?|seems?)\s+(?:\w+ly\s+)?(?:not|wrong|incorrect|false|invalid|ruled|eliminated"
    r"|impossible|a\s+(?:distractor|mistake|trap)|tempting|un\w+)|isn't|can(?:no|')t|\s*(?:均|都)?(?:不|错|有误)"
    r"|[)\s]*\?)"
)
_FORMULA_BEHIND = re.compile(r"\(|\s*(?:[=<>+*/^|]|\\(?!text)|-\s*\d)")
_WORD_BEHIND = re.compile(r"\s+(?P<word>[a-z]{2,})")
_BEHIND_A = frozenset(["is", "because", "since", "as", "and", "or", "which", "for", "by", "but", "not", "with"])
"""Words that may follow the option A or I; before any other word these letters are an article or a pronoun."""

_MARKED = re.compile(
    r"\*\*\s*\(?([A-Z])\)?\s*[.:]?\s*\*\*|\*\*\s*(?:\(([A-Z])\)|([A-Z])[).:])\s*[^*\n]{0,80}\*\*|__\(?([A-Z])\)?__"
    r"|[(（]([A-Z])[)）]",
    re.ASCII,
)
_DISCUSSED = re.compile(
    r"(?i)[\s*)）]*(?:is|are|was|were|would|has|had|does|do|fails?|ignores?|looks?|seems?|can|cannot)\b"
)
"""A verb behind a marked letter: the sentence discusses that option and chooses none."""

_AT_THE_END = re.compile(rf"(?i)\b(?:is|be|it's)\s+{_LETTERS}\s*[.!。]?\s*\Z")
_LISTED_OPTION = re.compile(r"(?m)(?:^[\s>*-]*\(?|(?<=[\s|]))([A-Z])[).:、](?=\s)", re.ASCII)
_OPTION_LABEL = re.compile(r"(?<![A-Za-z0-9])[(（]?([A-Z])[)）.:、]", re.ASCII)
_OPTION_WORD = re.compile(r"(?i)\b(?:option|choice|answer|statement)\b")

_PLAIN = names(
    "the a an this that these my our your its to of for from in among above below given following listed question "
    "problem item exercise list number here is are be was must should has it i we am choose chose pick select "
    "selected "
    "choosing going go goes went with best most likely probable appropriate suitable accurate correct right final "
    "true only single overall option options choice choices answer answers letter selection response conclusion thus "
    "therefore so hence then clearly definitely simply indeed probably think believe seems seem say guess opt settle "
    "settled left leaves leaving us me matches matching match corresponds points to on and or both maybe perhaps "
    "possibly also would could chinese english makes making "
    "ist richtige antwort die la le el il es est respuesta correcta réponse "
    "bonne risposta corretta resposta correta ответ"
)
"""Words that may stand inside a statement of a choice, before its letter. Any other word may suppose something, or tell
of somebody else's choice.
"""

_LEADING = names(
    "so thus hence therefore then now finally since because also okay ok yes no well here follows means shows "
    "implies gives know "
    "see find found get have can conclude conclusion summary step result solution explanation analysis reasoning "
    "answered my "
    "but however statement statements holds hold one remaining works work fits satisfies am will sure certain "
    "confident eliminating excluding comparing first second next last overall based above options that this it "
    "there let us go with correspond making"
)
"""Words besides `_PLAIN` that may lead to a statement of a choice in its clause."""

_CLAUSE_END = re.compile(
    r"[,;，；、．—–]|\s-\s|\\n|[\])}](?=\s+[A-Z][a-z])|\b(?:and|but|which|while)\b|\b(?:check|look|calculation|analysis|comparison"
    r"|computation|test|inspection|elimination|this|that|it|which)"
    r"(?:\s+(?:at|of|the|[a-z]+s?)){0,3}?\s+(?:shows?|confirms?|reveals?|indicates?|tells?|means|implies"
    r"|yields)\b(?:\s+us)?(?:\s+that\b)?"
)
"""Where the clause of a statement begins: behind a mark, or behind a check that shows it."""

_HAN = re.compile(r"[\u3400-\u9fff]")
_NOT_HAN = re.compile(r"[^\u3400-\u9fff\s（(]")
_CHINESE_HEAD = re.compile(
    r"(?:[\s\d*_#（(]|再?改[为成]|所以|因此|因而|因为|故|于是|从而|综上|所述|综合|最终|最后|正确|的|则|即|那么"
    r"|对应|得到|可得|可知|易知|得出|得|知|我们?|我认为|你|应该?|应|只能|只有"
    r"|可以?|要|就|也|这个?|本|该|此|道|题目?|问题|小题|第|它|其中|其|答案?|解|选项?|为|是|经过?(?:计算|分析|比较"
    r"|判断|检验)|由此|由上|(?:根据|由|通过)[\u3400-\u9fff]{1,8}?(?=可|，|,|知|得|$))*+"
)
"""Chinese words that may stand before a statement of a choice in its clause."""

_OF_SOMEBODY = re.compile(r"说|认为|觉得|以为|猜|学生|同学|老师|有人|有的|有些|别人|如果|要是|假如|除非")
"""Words of somebody else, of guesses and of suppositions."""
_BEHIND_IN_CHINESE = re.compile(
    r"[\s)）\]】\"”]*(?:\Z|[^\u3400-\u9fff]|(?:这?个?选项|项|是?正确|[是为]?对的|符合|，|。)(?!吗|么|还是|或))"
)
"""Text that may stand behind a letter in Chinese: the end, a mark, or words that call it right."""

_REJECTED = re.compile(
    r"[)）\]】\s]*[，,]\s*而?不(?:能|应该?)?(?:选择?|是)\s*"
    r"(?P<letters>[A-Z](?:\s*[、和或及,，]?\s*[A-Z])*)(?=\s*(?:[。！.!\n]|\Z))"
)
"""The end of a sentence that rejects other options: 选B，不选C."""

_SUPPOSES = re.compile(
    r"(?i)\b(?:if|unless|suppos\w*|assum\w*|when|whenever|were|had|should\s+the|provid(?:ed|ing)|imagine"
    r"|as\s+long\s+as"
    r"|in\s+case)\b"
)
"""How a supposition begins, before or behind a statement in its sentence."""

_CONSEQUENCE = re.compile(r"(?i)\b(?:so|therefore|thus|hence|making|makes)\b")
_REASON = re.compile(r"(?i)\b(?:because|since|as(?!\s+long)|which|where|for|by)\b")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n|[。！？]")


class StatedChoice(NamedTuple):
    """The choice that a response states, and its position in characters of the text.

    answer: one letter, or the words of several letters. stands: whether the sentence states the choice and supposes
    nothing.
    """

    answer: str
    start: int
    end: int
    stands: bool = True


def choice_in_prose(text: str, last: str = "Z") -> StatedChoice | None:
    """Return the choice that a response makes among A to `last`; None if it makes none."""
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    letters = letters_of(stripped[start:])
    if letters is not None and max(letters) <= last:
        return StatedChoice(stripped[start:], start, len(stripped))
    return stated_choice(text, last) or _marked_choice(text, last)


def stated_choice(text: str, last: str = "Z") -> StatedChoice | None:
    """Return the last choice that a response states in words; None if it states none or only discusses options."""
    statements = choices_stated(text, last)
    # Spaces of the same length, so that positions in `plain` are positions in `text`.
    plain = _MARKUP.sub(lambda match: " " * len(match.group()), text)
    statements = statements or list(_statements(_AT_THE_END, plain, last))
    if not statements:
        # "option B" alone states a choice only if no other letter is named that way.
        statements = list(_statements(_WEAKLY_STATED, plain, last))
        if len({stated.answer for stated in statements}) > 1:
            return None  # options are discussed, no choice is made
        statements = [stated for stated in statements if _ENDS.match(plain, stated.end)]
    stated = max(statements, key=lambda stated: stated.end, default=None)
    if stated is not None and _CALLED_RIGHT_IN_CHINESE.match(plain, stated.start):
        # An analysis that calls an option right does not take back an answer that was stated before it.
        answers = {earlier.answer for earlier in _statements(_STATED, plain, last)}
        return stated._replace(stands=stated.stands and answers <= {stated.answer})
    return stated


def choices_stated(text: str, last: str = "Z") -> list[StatedChoice]:
    """Return every choice that `text` states in words, even if the text takes it back later."""
    plain = _MARKUP.sub(lambda match: " " * len(match.group()), text)
    return [s for pattern in _STATEMENTS for s in _statements(pattern, plain, last)]


def behind_rejected_options(text: str, end: int, letter: str) -> int:
    """Return where the clause ends that rejects other options than `letter`: 选B，不选C; `end` without one."""
    rejected = _REJECTED.match(text, end)
    return end if rejected is None or letter in rejected["letters"] else rejected.end()


def _statements(pattern: re.Pattern[str], plain: str, last: str) -> Iterator[StatedChoice]:
    """Yield the choices among A to `last` that match `pattern`, except those that the words beside them deny.

    plain: the text without markup.
    """
    start_of_search = 0
    while (match := pattern.search(plain, start_of_search)) is not None:
        start, end = match.span("letters")
        # The search goes on one character later, not behind the match: a denied phrase may hold the start of a good
        # phrase.
        start_of_search = match.start() + 1
        words = match["letters"]
        run = re.search(_RUN, words)
        letters = list(run[0] if run is not None else re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", words))
        if len(letters) > len(set(letters)) and run is not None:
            continue  # ABBA is a word
        if not all("A" <= letter.upper() <= last for letter in letters):
            continue
        # Forty characters reach the denial before a phrase; a longer look would take in the sentence before.
        if _DENIED_BEFORE.search(plain, max(0, match.start() - 40), match.start()) or _DENIED_BEHIND.match(plain, end):
            continue
        # A letter in brackets is an option, whatever follows.
        if not words.endswith((")", "）", "]", "】")) and not _ends_like_a_letter(plain, end, letters[-1]):
            continue
        start_of_search = end
        different = {letter.upper() for letter in letters}
        stands = _stands(plain, match.start(), start, end)
        # Several letters are kept as words, which equal no single option.
        yield StatedChoice(different.pop() if len(different) == 1 else words, start, end, stands)


def _stands(plain: str, begin: int, start: int, end: int) -> bool:
    """Whether the words of a statement say that its letter is the answer, and the words beside it suppose nothing.

    begin: where the statement begins; start, end: its letters.
    """
    inside = {word.lower() for word in re.findall(r"[A-Za-zÀ-ÿ\u0400-\u04ff]{2,}", plain[begin:start])}
    if not inside.issubset(_PLAIN):
        return False
    sentence = max((stop.end() for stop in _SENTENCE_END.finditer(plain, max(0, begin - 240), begin)), default=0)
    head = plain[max(sentence, begin - 240) : start]
    # Words behind "so" state a consequence, even after a supposition: "if it is heated, the gas expands, so B".
    head = _CONSEQUENCE.split(head)[-1]
    stop = _SENTENCE_END.search(plain, end)
    behind = plain[end : stop.start() if stop else len(plain)]
    if not _leads_to_choice(plain[max(sentence, begin - 240) : begin]) or (
        _HAN.search(plain, begin, end + 2) is not None and _BEHIND_IN_CHINESE.match(plain, end) is None
    ):
        return False
    # A supposition inside a reason limits nothing: "B, because the gas expands if it is heated".
    supposed, reason = _SUPPOSES.search(behind), _REASON.search(behind)
    in_reason = reason is not None and supposed is not None and reason.start() < supposed.start()
    return _SUPPOSES.search(head) is None and (supposed is None or in_reason)


def _leads_to_choice(head: str) -> bool:
    """Whether `head`, the words before a statement in its sentence, only leads to it: no "some students think"."""
    clause = _CLAUSE_END.split(_CONSEQUENCE.split(head)[-1])[-1]
    if _HAN.search(head) is None:
        words = (word.lower() for word in re.findall(r"[A-Za-z]{2,}", clause))
        return all(word in _PLAIN or word in _LEADING for word in words)
    clause = _NOT_HAN.split(clause)[-1]  # the words behind a formula
    return (
        _CHINESE_HEAD.fullmatch(clause) is not None
        and _OF_SOMEBODY.search(head.replace("我认为", "")) is None
        and not hedges(head)
    )


def _ends_like_a_letter(plain: str, end: int, letter: str) -> bool:
    """Whether a bare letter that ends at `end` is an option: no article before a word, no variable in a formula.

    plain: the text without markup.
    """
    if _FORMULA_BEHIND.match(plain, end):
        return False
    following = _WORD_BEHIND.match(plain, end)
    if following is None:
        return True
    return letter.isupper() and (letter not in "AI" or following["word"] in _BEHIND_A)


def _marked_choice(text: str, last: str) -> StatedChoice | None:
    """Return the letter that is the last line, or the only letter that is set in bold or brackets; else None."""
    stripped = text.rstrip()
    line_at = stripped.rfind("\n") + 1
    if len({match[1] for match in _LISTED_OPTION.finditer(text)}) > 1:
        return None  # a list of options
    line = stripped[line_at:]
    labels = {match[1] for match in _OPTION_LABEL.finditer(line)}
    letter = None if _OPTION_WORD.search(line) or len(labels) > 1 else letter_of(line, last, any_case=True)
    if letter is not None:
        # Searched in upper case, since the line may give its letter small.
        start = stripped.upper().find(letter, line_at)
        return StatedChoice(letter, start, start + 1)
    # The last line is tried before the whole text: marks further up may be the options under discussion.
    for begin in (line_at, 0):
        marks = [(match[match.lastindex or 0], match) for match in _MARKED.finditer(stripped, begin)]
        marks = [(letter, m) for letter, m in marks if letter <= last and not _DISCUSSED.match(stripped, m.end())]
        if len({letter for letter, _ in marks}) == 1:
            letter, match = marks[-1]
            return StatedChoice(letter, match.start(match.lastindex or 0), match.end(match.lastindex or 0))
        if marks:
            return None
    return None
