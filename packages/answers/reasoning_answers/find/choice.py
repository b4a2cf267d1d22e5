r"""Multiple choice in prose: the letter that a response gives as its answer.

A stated answer ("the answer is B", "故选 B", "that leaves B") beats any mark, and the last statement counts. Without a
statement, a letter counts if it is the last line, or the only letter marked as an option. Several letters are not a
choice.

A statement is a phrase (`_STATED`, `_CALLED_RIGHT`) with the letters that belong to it. It is dropped if the words
around it deny it, if a letter is beyond the last option, or if what follows makes the letter an article ("A car") or a
variable ("B = 3"). It leaves the choice undecided if its sentence has a guard (`find.guards`): "perhaps the answer is
B" and "the answer would be B if it were fair" do not choose anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reasoning_answers.find.guards import CONSEQUENCE, is_guarded_beside_label
from reasoning_answers.find.values import UNSTATED, Extraction, Method, sentence_around
from reasoning_answers.letters import letter_of, letters_of
from reasoning_answers.patterns import regex

_MARKUP = regex(
    r"\*+|__+|`+|\$+|[\"“”{}]|</?[a-zA-Z][^<>\n]{0,30}>|\\[,;:!()\[\] ]"
    r"|\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|boxed|fbox|mbox|left|right)(?![A-Za-z])"
)
"""Characters and commands that only change the appearance of a text."""

# Parts of patterns: an option letter, what joins two letters, letters in one run (ABC), the letters of a statement, and
# what may come between its words and its letters.
_LETTER = r"(?:[(（\[【]\s*[A-Za-z]\s*[)）\]】]|(?<![A-Za-z0-9_\\])[A-Za-z](?![A-Za-z0-9'’_^]))"
_AND = r"\s*(?:[/&]|\bor\b|\band\b|和|或者?|还是|以?及|与|,\s*(?:or|and)\b)\s*(?:(?:maybe|perhaps|possibly|also)\s+)?"
_COMMA = r"\s*[,，、;]\s*"
_RUN = r"(?<![A-Za-z0-9_\\])(?-i:[A-H]{2,8})(?![A-Za-z0-9'’_^])"
_LETTERS = (
    rf"(?P<letters>(?:[(（\[【]\s*)?{_RUN}(?:\s*[)）\]】])?|{_LETTER}(?:{_AND}{_LETTER}|{_COMMA}{_LETTER}"
    r"(?!\s+(?:is|are|was|has|does|gives|would|fails|ignores|can|cannot|because)\b)){0,25})"
)
_INTRO = (
    r"(?:\s*(?:therefore|thus|clearly|likely|probably|most|definitely|simply|indeed|option|choice|answer|letter"
    r"|the|only"
    r"|i\s+(?:think|believe)|it(?:\s+is|'s)|seems?|to\s+be|that|selected|选项|is|[:：])){0,12}\s*"
)
_STATED = regex(
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
      | \b(?:correct|final)\s*[:：] | \bnot\s+{_LETTER}\s*,?\s*but\b
      | 正确的?是 | 故选 | 应选 | 因此选 | 所以选 | (?<![不别勿])选择? | 正?确?(?:答案|选项)[】\]]?应?该?[是为]?
      | (?:正解|答え)は? | 정답[은이]? )
    {_INTRO} {_LETTERS}
    """
)
"""A phrase that states a choice, with its letters: "the answer is B", "I choose B", 故选B."""

_CALLED_RIGHT = regex(
    rf"""(?xi) (?:\b(?:option|choice|answer|makes|making)\s+)? {_LETTERS} [).]? \s+
    (?:(?:is|are|must\s+be|seems)\s+)? (?:therefore\s+|thus\s+|clearly\s+)? (?:the\s+)? (?:only\s+|most\s+)?
    (?:(?:correct|right|best|valid)\b(?!\s+if\b)|answer\b|(?:option|choice|one)\s+(?:that|which)\b)"""
)
""""B is correct", "B is the best answer"."""

_CALLED_RIGHT_IN_CHINESE = regex(rf"{_LETTERS}\s*(?:选项)?\s*(?:是?正确|(?<=只有.)符合|(?<=只有选项.)符合)")
_CALLED_THE_ONLY_ONE = regex(
    rf"(?i){_LETTERS}\s+is\s+the\s+only\s+(?:possible\s+|remaining\s+)?(?:option|choice|answer|one)\b"
)
_ONLY_ONE_LEFT = regex(
    rf"(?i)\bonly\s+(?:(?:option|choice)\s+)?{_LETTERS}\s+"
    r"(?:satisfies|works|fits|matches|meets|remains|is\s+(?:left|possible|consistent))\b"
)
""""only B fits"."""

_WEAKLY_STATED = regex(rf"(?i)\b(?:option|choice|statement)\s+{_LETTERS}")
"""An option that is named, and chosen only if no other is."""

_ENDS = regex(r"[)\]\s]*(?:[.,:;!。，：；！—–-]|\Z)")
"""The end of a clause after a letter. A letter before a verb ("option G confuses …") is discussed, not chosen."""

_STATEMENTS = (_STATED, _CALLED_RIGHT, _CALLED_RIGHT_IN_CHINESE, _CALLED_THE_ONLY_ONE, _ONLY_ONE_LEFT)
_DENIED_BEFORE = regex(
    r"(?i)\b(?:(?:incorrect|wrong|false|not|cannot|\w+n['’]t|never|other|eliminated|rejected|worst|unlikely"
    r"|least\s+\w+)"
    r"|(?:all|any|every|each|none|no)(?:\s?\w+)?\s+(?:but|except(?:\s+for)?))\s+(?:\w+\s+)?$"
)
_DENIED_BEHIND = regex(
    r"(?i)\s*+(?:(?:is|are|was|looks?|seems?)\s+(?:\w+ly\s+)?(?:not|wrong|incorrect|false|invalid|ruled|eliminated"
    r"|impossible|a\s+(?:distractor|mistake|trap)|tempting|un\w+)|isn't|can(?:no|')t|(?:均|都)?(?:不|错|有误)"
    r"|[)\s]*+\?)"
)
"""`_DENIED_BEFORE`, `_DENIED_BEHIND`: words next to a statement that deny it."""

_FORMULA_BEHIND = regex(r"\(|\s*(?:[=<>+*/^|]|\\(?!text)|-\s*\d|[–-]\s*[A-Z](?![A-Za-z'’)]|\s+[a-z]))")
"""The text after a letter that is a variable in a formula, not a choice."""

_WORD_BEHIND = regex(r"\s+(?P<word>[a-z]{2,})")
_BEHIND_A = frozenset(["is", "because", "since", "as", "and", "or", "which", "for", "by", "but", "not", "with"])
"""Words that may follow the option A or I; before any other word, these letters are an article or a pronoun."""

_MARKED = regex(
    r"\*\*\s*\(?([A-Z])\)?\s*[.:]?\s*\*\*|\*\*\s*(?:\(([A-Z])\)|([A-Z])[).:])\s*[^*\n]{0,80}\*\*|__\(?([A-Z])\)?__"
    r"|[(（]([A-Z])[)）]",
    re.ASCII,
)
"""A letter in bold or in brackets."""

_DISCUSSED = regex(r"(?i)[\s*)）]*(?:is|are|was|were|would|has|had|does|do|fails?|ignores?|looks?|seems?|can|cannot)\b")
"""A verb after a marked letter: the sentence discusses that option and chooses none."""

_AT_THE_END = regex(rf"(?i)\b(?:is|be|it's)\s+{_LETTERS}\s*[.!。]?\s*\Z")
""""… is B." at the end of a reply."""

_LISTED_OPTION = regex(r"(?m)(?:^[ \t>*-]*+\(?|(?<=[\s|]))([A-Z])[).:、](?=\s)", re.ASCII)
"""The label of an option that the reply lists: "B. 12" at the beginning of a line."""

_OPTION_LABEL = regex(r"(?<![A-Za-z0-9])[(（]?([A-Z])[)）.:、]", re.ASCII)
"""A letter followed by a bracket, dot or colon."""

_OPTION_WORD = regex(r"(?i)\b(?:option|choice|answer|statement)\b")
"""A word of a sentence about options."""

_REASON = regex(r"(?i)\b(?:because|since|as(?!\s+long)|which|where|for|by)\b|因为|[，。]")
"""Where the words after a choice continue with its reason."""


def choice_in_prose(text: str, last: str = "Z") -> Extraction | None:
    """Return the choice that a response makes among A to `last`; None if it makes none."""
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    letters = letters_of(stripped[start:])
    if letters is not None and max(letters) <= last:
        return Extraction(stripped[start:], start, len(stripped), "letter")
    return stated_choice(text, last) or _marked_choice(text, last)


def stated_choice(text: str, last: str = "Z") -> Extraction | None:
    """Return the last choice that a response states in words; None if it states none or only discusses options."""
    # Spaces of the same length, so that positions in `plain` are positions in `text`.
    plain = _MARKUP.sub(lambda match: " " * len(match.group()), text)
    statements = [stated for pattern in _STATEMENTS for stated in _statements(pattern, plain, last)]
    statements = statements or list(_statements(_AT_THE_END, plain, last))
    if not statements:
        # "option B" alone states a choice only if no other letter is named that way.
        statements = list(_statements(_WEAKLY_STATED, plain, last))
        if len({stated.answer for stated in statements}) > 1:
            return None  # options are discussed, no choice is made
        statements = [stated for stated in statements if _ENDS.match(plain, stated.end)]
    return max(statements, key=lambda stated: stated.end, default=None)


def _statements(pattern: re.Pattern[str], plain: str, last: str) -> Iterator[Extraction]:
    """Yield the choices among A to `last` that match `pattern`, except choices that the surrounding words deny.

    plain: the text without markup.
    """
    start_of_search = 0
    while (match := pattern.search(plain, start_of_search)) is not None:
        start, end = match.span("letters")
        # The search continues one character later, not after the match: a denied phrase may contain the start of a good
        # phrase.
        start_of_search = match.start() + 1
        words = match["letters"]
        run = re.search(_RUN, words)
        letters = list(run[0]) if run is not None else re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", words)
        if not all("A" <= letter.upper() <= last for letter in letters):
            continue
        # Forty characters reach the denial before a phrase; more would include the sentence before.
        if _DENIED_BEFORE.search(plain, max(0, match.start() - 40), match.start()) or _DENIED_BEHIND.match(plain, end):
            continue
        # A letter in brackets is an option, whatever follows.
        if not words.endswith((")", "）", "]", "】")) and not _ends_like_a_letter(plain, end, letters[-1]):
            continue
        start_of_search = end
        different = {letter.upper() for letter in letters}
        method: Method = "letter" if _is_certain(plain, match.start(), start, end) else UNSTATED
        # Several letters are kept as words, which do not equal any single option.
        yield Extraction(different.pop() if len(different) == 1 else words, start, end, method)


def _is_certain(plain: str, begin: int, start: int, end: int) -> bool:
    """Whether the sentence of a statement expresses no doubt or supposition and does not report somebody else's choice.

    begin: where the statement begins; start, end: its letters.
    """
    first, finish = sentence_around(plain, begin, end, lo=0, hi=len(plain))
    # Words after "so" state a consequence, even after a supposition: "if it is heated, the gas expands, so B".
    head = CONSEQUENCE.split(plain[first:start])[-1]
    # A supposition inside a reason does not limit anything: "B, because the gas expands if it is heated".
    behind = _REASON.split(plain[end:finish])[0]
    return not (
        plain[finish : finish + 1] in ("?", "？")
        or is_guarded_beside_label("", head)
        or is_guarded_beside_label("", behind)
    )


def _ends_like_a_letter(plain: str, end: int, letter: str) -> bool:
    """Whether a bare letter that ends at `end` is an option: not an article before a word, nor a variable in a formula.

    plain: the text without markup.
    """
    if _FORMULA_BEHIND.match(plain, end):
        return False
    following = _WORD_BEHIND.match(plain, end)
    if following is None:
        return True
    return letter.isupper() and (letter not in "AI" or following["word"] in _BEHIND_A)


def _marked_choice(text: str, last: str) -> Extraction | None:
    """Return the letter that is the last line, or the only letter set in bold or brackets; otherwise None.

    A reply that lists its options marks all of them, so the result is None.
    """
    stripped = text.rstrip()
    line_at = stripped.rfind("\n") + 1  # where the last line begins
    if len({match[1] for match in _LISTED_OPTION.finditer(text)}) > 1:
        return None  # a list of options
    line = stripped[line_at:]
    labels = {match[1] for match in _OPTION_LABEL.finditer(line)}
    # Words such as "option", or several labels, make it a line about options: only a mark in it can be a choice.
    discusses = _OPTION_WORD.search(line) is not None or len(labels) > 1
    letter = None if discusses else letter_of(line, last, any_case=True)
    if letter is not None:
        # Searched in upper case, since the line may have its letter in lower case.
        start = stripped.upper().find(letter, line_at)
        return Extraction(letter, start, start + 1, "letter")
    # The last line is tried before the whole text: marks further up may be the options under discussion.
    for begin in (line_at, 0):
        # `lastindex` is the group of the pattern that contains the letter.
        marks = [(match[match.lastindex or 0], match) for match in _MARKED.finditer(stripped, begin)]
        marks = [(letter, m) for letter, m in marks if letter <= last and not _DISCUSSED.match(stripped, m.end())]
        if len({letter for letter, _ in marks}) == 1:
            letter, mark = marks[-1]
            return Extraction(letter, *mark.span(mark.lastindex or 0), "letter")
        if marks:
            return None
    return None
