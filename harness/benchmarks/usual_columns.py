"""The usual names of columns in files of questions, tried in this order if the user names no column."""


def _capitalised(*names: str) -> tuple[str, ...]:
    """Each name as it is, and with a capital first letter where that differs."""
    return tuple(dict.fromkeys(form for name in names for form in (name, name.capitalize())))


_QUESTIONS_ELSEWHERE = _capitalised(
    "问题", "题目", "试题", "题干", "問題", "題目", "質問", "設問", "문제", "질문", "pregunta", "problema", "pergunta",
    "questão", "enunciado", "frage", "aufgabe", "problème", "énoncé", "domanda", "vraag", "opgave", "вопрос", "задача",
    "pytanie", "zadanie", "soru", "câu hỏi", "bài toán", "سؤال", "السؤال", "مسألة", "المسألة", "प्रश्न",
)  # fmt: skip
_ANSWERS_ELSEWHERE = _capitalised(
    "答案", "参考答案", "正确答案", "标答", "标准答案", "正解", "答え", "回答", "정답", "respuesta", "resposta",
    "antwort", "réponse", "risposta", "antwoord", "ответ", "odpowiedź", "cevap", "yanıt", "đáp án", "câu trả lời",
    "إجابة", "الإجابة", "جواب", "الجواب", "उत्तर",
)  # fmt: skip

QUESTION_COLUMNS = ("problem", "Problem", "question", "Question", "prompt", "Prompt", *_QUESTIONS_ELSEWHERE)
ANSWER_COLUMNS = (
    "answer", "Answer", "expected_answer", "final_answer", "gold", "target", "reference", *_ANSWERS_ELSEWHERE,
)  # fmt: skip
ID_COLUMNS = ("id", "编号", "序号", "题号")

IN_OTHER_LANGUAGES = frozenset((*_QUESTIONS_ELSEWHERE, *_ANSWERS_ELSEWHERE, *ID_COLUMNS[1:]))
"""The names that messages leave out, because they would hide the few that a reader needs."""
