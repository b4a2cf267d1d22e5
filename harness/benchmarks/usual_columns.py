"""The usual names of columns in files of questions, tried in this order if the user names no column."""

QUESTION_COLUMNS = ("problem", "Problem", "question", "Question", "prompt", "Prompt")
ANSWER_COLUMNS = ("answer", "Answer", "expected_answer", "final_answer", "gold", "target", "reference")
