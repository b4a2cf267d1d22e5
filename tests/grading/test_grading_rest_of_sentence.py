r"""What follows a stated answer in its own sentence: answers × statements × words behind them, in four languages.

For: harness.grading.find.rest_of_sentence, harness.grading.find.sentences, harness.grading.find.behind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from harness.grading.find.rest_of_sentence import adds_nothing, leaves_value, restatement
from tests.budget import share_of
from tests.grading.outcomes import outcome

ANSWERS = {
    "number": ("12", "$12$"),
    "fraction": (r"\frac34", r"$\frac34$"),
    "percent": (r"35\%", r"$35\%$"),
    "unit": ("3 dollars", "$3$ dollars"),
    "unit in the formula": (r"15\text{ cm}", r"$15\text{ cm}$"),
    "root": (r"3\sqrt2", r"$3\sqrt2$"),
    "expression": ("2x+1", "$2x+1$"),
    "value with a name": ("x=7", "$x=7$"),
    "tuple": ("(3,4)", "$(3,4)$"),
    "set": (r"\{1,3,9\}", r"$\{1,3,9\}$"),
    "interval": ("(1,5)", "$(1,5)$"),
}
"""Kind of a reference → the reference and a right answer."""

STATEMENTS = {
    "English": ("The answer is {a}", "So the final answer is {a}", "Answer: {a}", "The total is {a}", "So we get {a}"),
    "German": ("Antwort: {a}", "Die Antwort ist {a}"),
    "Spanish": ("Respuesta: {a}", "La respuesta es {a}"),
    "French": ("Réponse : {a}", "La réponse est {a}"),
}

GOES_ON = {
    "English": (
        # a further amount
        " and fifty cents", " and a half", " and 5 more", " and three quarters", " and change", " and something",
        " plus 4",
        " minus 2", " times 3", ", times 2", ", squared", " hours and 20 minutes", " dollars and fifty cents",
        " thousand",
        ", plus tax", " dozens",
        # a correction
        ", no, 13", ", wait, 13", ", I mean 13", ", or rather 13", ", correction: 13", ", sorry, 13", " — 13, actually",
        ", which is wrong", ", which cannot be right", ", but it is not", " (wrong)", " is not the answer",
        # a further step
        ", which we must double", ", which must be halved", ", then add 5", ", to which we add 5",
        ", and then we add 3",
        ", from which we subtract 5", ", rounded down", ", rounded to 13",
        # a hedge
        ", I guess", ", probably", ", maybe", ", I think", ", perhaps", ", give or take", " or thereabouts",
        " (I think)",
        " (?)", " as a first estimate", " by my guess", " might be it", " seems likely", " according to my friend",
        " until proven otherwise", " for now", " so far",
        # an alternative, a range
        " or 13", ", or 13", " or maybe 13", " or more", " or less", " or so", " or its negative", "…or 13", " to 20",
        " through 20", " at least", " at most", " (or 13)", " (at least)", " as an upper bound",
        # a condition, a part
        " when x is positive", " except at 0", " with x > 0", " where x > 0", " with probability 1/2",
        " in the first case",
        " in the best case", " for part (a)", " for the first part", " in part one", " on average", " not counting one",
        " before tax", " after tax", " without the tip", " excluding weekends",
        # another unit or direction
        " per day", " a week", " for each child", " modulo 7", " remainder 2", " more than before", " times as many",
        " higher", " too many", " fewer", " short", " below zero", " in debt", " out of 20", " with a minus sign",
        # a denial
        " is wrong", " is impossible", " is too large", " would be wrong", " can be excluded", " was my first guess",
        " is only half of it", " is what a careless student gets", ", not the required one",
    ),
    "German": (
        " und fünfzig Cent", " und ein halb", " oder 13", " oder mehr", " pro Tag", ", glaube ich", ", vielleicht",
        ", nein, 13", ", Quatsch, 13", " mal drei", " minus 2", " plus 4", " zum Quadrat", " Tausend", " höchstens",
        " mindestens", " vor Steuern", " ohne Trinkgeld", " im ersten Fall", " ist falsch", " ist nicht richtig",
        ", was nicht stimmt", ", das müssen wir verdoppeln", " bis 20", " je Kind", " weniger als vorher",
        ", genauer 13",
    ),
    "Spanish": (
        " y cincuenta centavos", " y medio", " o 13", " o más", " por día", ", creo", ", quizás", ", no, 13",
        ", mejor dicho 13", " por tres", " menos 2", " al cuadrado", " mil", " como máximo", " al menos",
        " sin la propina", " en el primer caso", " es incorrecto", " no es correcto", ", que debemos duplicar",
        " menos que antes", " salvo en 0", ", es decir 13",
    ),
    "French": (
        " et cinquante centimes", " et demi", " ou 13", " ou plus", " par jour", ", je crois", ", peut-être",
        ", non, 13",
        ", plutôt 13", " fois trois", " moins 2", " au carré", " mille", " au maximum", " au moins",
        " sans le pourboire",
        " dans le premier cas", " est faux", " n'est pas correct", ", qu'il faut doubler", " de moins qu'avant",
        " sauf en 0", ", c'est-à-dire 13",
    ),
}  # fmt: skip
"""Continuations behind which an answer is not the stated value, or not for certain."""

LEAVES = {
    "English": (
        "", " as required", ", as desired", " because the sum of all parts is known", ", because we counted everything",
        ", since the terms cancel", ", which is what we wanted", ", which completes the solution", ", and we are done",
        " in total", " altogether", ", in total", " in all", " overall", " exactly", ", not 13", ", rather than 13",
        " by symmetry", " by the Pythagorean theorem", ", as shown above", " as we computed above", " (see above)",
        " (as required)", " ✓", ", which matches the check", ", and this is our final answer", " is the answer",
        ". I hope this helps", ", so we are done", " as the final answer", " for this problem", " to this question",
        ", exactly as expected", ", by direct computation", ", using the formula", ", found by adding both parts",
        ", obtained by counting", " in simplest form", " in lowest terms", ", because $2\\cdot 6=12$", " here",
    ),
    "German": ("", ", da alles gezählt wurde", ", weil die Summe bekannt ist", ", was zu zeigen war", " insgesamt"),
    "Spanish": ("", ", porque la suma es conocida", ", ya que contamos todo", " en total", ", como se pedía"),
    "French": ("", ", car la somme est connue", ", puisque tout est compté", " au total", ", comme demandé"),
}  # fmt: skip
"""Continuations that add nothing to the value."""


def replies(kind: str, language: str, continuations: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield (reference, reply)."""
    reference, answer = ANSWERS[kind]
    for statement in STATEMENTS[language]:
        for continuation in continuations:
            yield reference, f"{statement.format(a=answer)}{continuation}."


@pytest.mark.parametrize("language", sorted(GOES_ON))
@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_an_answer_whose_sentence_goes_on_is_not_correct(kind: str, language: str) -> None:
    accepted = [
        reply
        for reference, reply in share_of(replies(kind, language, GOES_ON[language]))
        if outcome(reference, reply) == "correct"
    ]
    assert accepted == []


@pytest.mark.parametrize("language", sorted(LEAVES))
@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_most_words_that_add_nothing_leave_the_answer(kind: str, language: str) -> None:
    verdicts = [outcome(reference, reply) for reference, reply in replies(kind, language, LEAVES[language])]
    assert "wrong" not in verdicts
    # "in total" and the like say nothing of a tuple or an interval.
    assert verdicts.count("correct") >= (0.9 if language == "English" else 0.8) * len(verdicts)


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("3 dollars", "The answer is `$3$` dollars and fifty cents.", "undecided"),
        ("3 dollars", "The answer is 3 dollars and fifty cents.", "undecided"),
        ("3 dollars", "The answer is `$3$` dollars in total.", "correct"),
        (r"\frac34", r"The answer is $\frac34$, or 0.75.", "correct"),
        (r"\frac34", r"The answer is $\frac34$, which equals $0.75$.", "correct"),
        (r"\frac34", r"The answer is $\frac34$, or 0.57.", "undecided"),
        ("3", "The answer is $3$, or 13.", "undecided"),
        ("12", "The answer is $12$ red marbles in the bag.", "correct"),
        ("12", "The answer is $12$ numbers that sum to 7.", "correct"),
        ("12", "The answer is $12$ if n is even.", "undecided"),
        ("12", "The answer is $12$, so the proof is complete.", "correct"),
        ("12", "The answer is $12$, so the total is 13.", "undecided"),
        ("12", "The answer is $12$ so far.", "undecided"),
    ],
)
def test_a_rest_and_its_wrong_twin(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize("word", ["percent", "per cent", "pct", "percentage"])
@pytest.mark.parametrize("reply", ["12 {}", "So we get 12 {}.", "The answer is 12 {}."])
def test_a_word_for_percent_is_a_part_of_the_answer(word: str, reply: str) -> None:
    for right in ("12%", "0.12", "12"):
        assert outcome(right, reply.format(word)) == outcome(right, reply.format("%")) == "correct"
    for wrong in ("13%", "1.2", "13"):
        assert outcome(wrong, reply.format(word)) == "wrong"
    for further in ("points", *(() if "answer" in reply else ("of it", "of the total"))):
        assert outcome("12%", reply.format(f"{word} {further}")) == "undecided"


RUNS = (
    "\t",
    " ",
    "\n",
    "\u00a0",
    ",",
    ", ",
    "and ",
    " ,\t",
    " in total",
    " of the cake",
    "as required, ",
    "(",
    "$",
    "$1$ ",
    "\\(",
)
"""Pieces of a hostile rest: blanks, marks and words that the list allows."""


@pytest.mark.parametrize("piece", RUNS)
def test_a_long_rest_is_read_in_bounded_time(piece: str) -> None:
    began = time.process_time()
    for length in (1_150, 20_000):
        rest = f" apples {piece * (length // len(piece))}x"
        for read in (leaves_value, restatement, adds_nothing):
            read(rest)
    # Each takes milliseconds; patterns that share a run of blanks took 12 seconds and more.
    assert time.process_time() - began < 1.5


def test_a_run_of_blanks_is_one_blank() -> None:
    assert outcome("3", f"The answer is $3$ apples{' ' * 2_000}in total.") == "correct"
    assert restatement(f" apples,{' ' * 2_000}or 4") == "4"
    assert restatement(f" apples{' and pears' * 2_000}, or 4") is None


ROUNDINGS = {
    "12": ("12.0", "13.5"),
    "1/3": ("0.33", "0.67"),
    r"\frac13": ("0.333", "0.34"),
    r"\frac{2}{3}": ("66.7%", "67.7%"),
    "0.333": ("0.33", "0.4"),
    r"-\frac{1}{8}": ("-0.125", "0.125"),
    "2.5": ("2.50", "2.05"),
}
"""Answer → its rounding, and a number that is none."""


@pytest.mark.parametrize(
    "link", [" ≈ {}", " (≈ {})", ", or about {}", ", approximately {}", " (about {})", " or about {}"]
)
@pytest.mark.parametrize("answer", sorted(ROUNDINGS))
def test_a_rounded_form_is_compared_with_the_answer(answer: str, link: str) -> None:
    right, wrong = ROUNDINGS[answer]
    assert outcome(answer, f"The answer is ${answer}${link.format(right)}.") == "correct"
    assert outcome(answer, f"The answer is ${answer}${link.format(wrong)}.") != "correct"
    assert outcome(answer, f"The answer is {answer}{link.format(wrong)}.") != "correct"


def test_the_rounded_form_of_a_root_leaves_it() -> None:
    assert outcome(r"\sqrt2", r"The answer is $\sqrt2$ ≈ 1.41.") == "correct"
    assert outcome("7", "The answer is $3+4$ ≈ 9.1.") != "correct"


MULTIPLIERS = {
    "Die Antwort ist": "Fünftel Zehntel Hälften Drittel Viertel Achtel Hundertstel Tausendstel Dutzende Promille",
    "La réponse est": "dixièmes centièmes cinquièmes huitièmes tiers demis milliers milliards douzaines centaines",
    "La respuesta es": "décimas centésimas milésimas tercios cuartos quintos octavos novenos medios docenas millares",
    "The answer is": "twelfths twentieths thirteenths hundredths halves dozens",
}
"""Statement → fractions and numerals of scale that multiply the number before them."""


@pytest.mark.parametrize("statement", sorted(MULTIPLIERS))
def test_a_fraction_in_words_is_nothing_that_was_counted(statement: str) -> None:
    words = MULTIPLIERS[statement].split()
    accepted = [word for word in words if outcome("3", f"{statement} $3$ {word}.") == "correct"]
    assert accepted == []


@pytest.mark.parametrize(
    "counted",
    [
        "The answer is {} hotel rooms",
        "Die Antwort ist {} Äpfel",
        "La réponse est {} pommes",
        "La respuesta es {} manzanas",
    ],
)
def test_nouns_of_other_languages_are_counted(counted: str) -> None:
    assert outcome("3", f"{counted.format('$3$')}.") == "correct"


@pytest.mark.parametrize(
    "reason",
    [
        "Die Antwort ist $3$, weil es {} sind: vier|vierzehn|vierundzwanzig|dreihundert",
        "La respuesta es $3$, porque son {}: cuatro|quince|veinticinco|doscientos",
        "La réponse est $3$, car il y en a {}: quatre|quinze|vingt-cinq|quatre-vingts",
    ],
)
def test_a_reason_with_a_numeral_in_words_leaves_no_answer(reason: str) -> None:
    sentence, numerals = reason.rsplit(": ", 1)
    assert {outcome("3", f"{sentence.format(numeral)}.") for numeral in numerals.split("|")} == {"undecided"}
    assert outcome("3", f"{sentence.format('alles')}.") == "correct"


TWINS = (
    (" ways to arrange them", " ways to arrange them twice"),
    (" ways to choose the cards", " ways to choose the cards with repetition"),
    (" ways to choose the cards", " ways to double"),
    (" hours to finish the job", " hours to multiply by 2"),
    (" hours to finish the job", " hours to finish half of the job"),
    (" hours to finish the job", " hours to finish a third of the job"),
    (" hours to paint the wall", " hours to paint two walls"),
    (" hours to paint the wall", " hours to paint the wall, doubled"),
    (" hours to paint the wall", " hours to paint the wall if it rains"),
    (" hours to paint the wall", " hours to paint the wall times four"),
    (" hours to read the book", " hours to be doubled"),
    (" books he has left", " books he has left to double"),
    (" books he has left", " books less than he has left"),
    (" cm on each side", " dollars for each child"),
    (" to two decimal places", " to two"),
    (" to the nearest integer", " to 20"),
    (", which is option C", ", which is option C or D"),
    (", which corresponds to (C)", ", which corresponds to (C) times 2"),
    (", which is $1+2$", ", which is $1+3$"),
    (", which equals $6/2$", ", which equals $7/2$"),
    (", as can be seen from the table", ", as can be seen from the table, plus 4"),
    (", which makes sense", ", which makes no sense"),
    (", which makes sense", ", which makes sense if n is even"),
    (", using the quadratic formula and simplifying", ", using the quadratic formula and doubling"),
    (", using the quadratic formula and simplifying", ", using the quadratic formula and simplifying by 2"),
)
"""Continuations that leave the answer 3, each with one that does not."""


@pytest.mark.parametrize(("leaves", "goes_on"), TWINS)
def test_a_continuation_and_its_twin(leaves: str, goes_on: str) -> None:
    assert outcome("3", f"The answer is $3${leaves}.") == "correct"
    assert outcome("3", f"The answer is $3${goes_on}.") != "correct"
    assert outcome("4", f"The answer is $3${leaves}.") == "wrong"


@pytest.mark.parametrize("verb", ["have", "need", "need that"])
def test_an_inequality_is_a_result_of_what_one_needs_only_behind_so(verb: str) -> None:
    for lead in ("So we", "so we", "Hence, we", "Therefore we"):
        assert outcome("x>3", f"{lead} {verb} $x>3$.") == "correct"
        assert outcome("x>4", f"{lead} {verb} $x>3$.") == "wrong"
    assert outcome("x>3", f"We {verb} $x>3$.") != "correct"
    assert outcome("x>3", f"Since we {verb} $x>3$.") != "correct"


TURNS = (
    ("3", "$3$ of a kind"), ("1/3", "$1/3$ of it"), ("1/3", "1/3 of the cakes"), ("0.6", "$0.6$ of the balls"),
    ("3", "3 because 4 is the answer"), ("3", "$3$, since 4 works"), ("3", "$3$, because it must be doubled"),
    ("3", "$3$, because I made an error"), ("3", "3, thus we must add one more"), ("3", "$3$, so it is twice that"),
    ("12", "12, which is less than 10"), ("12", "$12$, which is more than 12"), ("3", "$3$ dollars before tax"),
    (r"\sqrt2", r"$\sqrt2$, which is more than 3"), ("3", "3 quarts"), ("3", "$3$ twelfths"), ("3", "3 dixièmes"),
)  # fmt: skip
LEAVES_IT = (
    ("12", "$12$ of the balls"), ("12", "$12$ of them"), ("3", "3 because 3 is the answer"),
    ("3", "$3$, so the proof is complete"), ("3", "$3$, because 4 does not divide 6"), ("3 quarts", "3 quarts"),
    ("12", "$12$, which is less than 15"), (r"\frac34", r"$\frac34$, which is larger than $\frac12$"),
    ("3 dollars", "3 dollars after the discount"),
)  # fmt: skip


def test_a_rest_that_turns_the_value_and_one_that_leaves_it() -> None:
    statements = ("The answer is {}.", "So the final answer is {}.")
    rests = [("3", "La réponse est $3$ quarts."), ("3", "Réponse : 3 quarts"), ("3", "La réponse est 3 quarts.")]
    rests += [(answer, form.format(text)) for answer, text in TURNS for form in statements]
    assert [reply for answer, reply in rests if outcome(answer, reply) == "correct"] == []
    stand = [(answer, form.format(text)) for answer, text in LEAVES_IT for form in statements]
    assert [reply for answer, reply in stand if outcome(answer, reply) != "correct"] == []
