"""The usual names of columns in files of questions, tried in this order if the user names no column.

`find` matches the names of columns: `Correct Answer` is `correct_answer`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Iterable

from harness.core.inert import visible

_QUESTIONS_ELSEWHERE = (
    "问题", "题目", "试题", "题干", "問題", "題目", "質問", "設問", "문제", "질문", "pregunta", "problema", "pergunta",
    "questão", "enunciado", "frage", "aufgabe", "problème", "énoncé", "domanda", "vraag", "opgave", "вопрос", "задача",
    "pytanie", "zadanie", "soru", "câu hỏi", "bài toán", "سؤال", "السؤال", "مسألة", "المسألة", "प्रश्न",
)  # fmt: skip
_ANSWERS_ELSEWHERE = (
    "答案", "参考答案", "正确答案", "标答", "标准答案", "正解", "答え", "回答", "정답", "답", "답안",
    "respuesta", "resposta", "antwort", "réponse", "risposta", "antwoord", "ответ", "odpowiedź", "cevap", "yanıt",
    "đáp án", "câu trả lời", "إجابة", "الإجابة", "جواب", "الجواب", "उत्तर",
)  # fmt: skip

QUESTION_COLUMNS = ("problem", "question", "prompt", *_QUESTIONS_ELSEWHERE)
ANSWER_COLUMNS = (
    "answer", "expected_answer", "final_answer", "correct_answer", "gold", "target", "reference", *_ANSWERS_ELSEWHERE,
)  # fmt: skip
ID_COLUMNS = ("id", "编号", "序号", "题号")

IN_OTHER_LANGUAGES = frozenset((*_QUESTIONS_ELSEWHERE, *_ANSWERS_ELSEWHERE, *ID_COLUMNS[1:]))
"""The names that messages leave out, because they would hide the few that a reader needs."""


IN_CHINESE = frozenset(name for name in IN_OTHER_LANGUAGES if all("\u4e00" <= sign <= "\u9fff" for sign in name))
"""The names in Chinese characters only."""

PUPIL_COLUMNS = frozenset(("姓名", "学生", "学号"))
"""Usual names, in Chinese, of a column that says whose reply a row holds."""


def find(names: Iterable[str], columns: Collection[str]) -> str | None:
    """The column that has the first of these names that any column has; None if there is none.

    A column spelt exactly as the name comes first, then one that differs in case, spaces, underscores and hyphens only.
    """
    folded: dict[str, str] | None = None
    for name in names:
        if name in columns:
            return name
        if folded is None:
            folded = {}
            for column in columns:
                folded.setdefault(_fold(column), column)
        if (alike := folded.get(_fold(name))) is not None:
            return alike
    return None


def near_chinese_name(names: Iterable[str], columns: Iterable[str]) -> str:
    """The end of a message, such as ` Did you mean 问题 by 问提?`, if a column is one Chinese character away from one
    of these names and no usual name itself; else empty. Such names are too short for `near_names`."""
    unusual = [column for column in columns if column not in IN_OTHER_LANGUAGES]
    for name in IN_CHINESE.intersection(names):
        for column in unusual:
            if len(column) == len(name) > 1 and sum(map(str.__ne__, column, name)) == 1:
                return f" Did you mean {name} by {visible(column, 60)}?"
    return ""


@functools.lru_cache(maxsize=4096)
def _fold(name: str) -> str:
    """The name without the differences of spelling that `find` ignores."""
    composed = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in composed if not c.isspace() and c not in "_-")
