"""Sentences around a number, made by the thousand: those that state it as the answer, and those that do not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

NUMBERS = ("36", "7", "1,250", "0.75", "-4", "\\frac{5}{8}", "four", "twenty-one", "one")
REFERENCES = {"1,250": "1250", "four": "4", "twenty-one": "21", "one": "1"}
"""The reference of a number that is written otherwise in a reply."""

CLAUSES = (
    "if n is even", "unless k divides m", "when the coin is fair", "provided that x > 3",
    "assuming independence", "only if p is prime", "in case both agree", "as long as a > b",
    "whenever the sum is odd", "given that B occurs", "supposing the die is fair", "had we stopped earlier",
    "were it not for the tie", "should the limit exist",
)  # fmt: skip
FRAMES = (
    "{clause}, it is {v}.", "{clause}, there are {v} ways.", "{clause} the total is {v}.",
    "{clause}, we get {v}.", "{clause}, then f(n) = {v}.", "So {clause}, the sum equals {v}.",
)  # fmt: skip
INVERTED = (
    "Only {clause} is the answer {v}.", "Not {clause} do we get {v}.",
    "Only then, {clause}, does it equal {v}.",
)  # fmt: skip
NOT_STATED = (
    "There are {v} cases left to check.", "Now try the remaining {v} candidates.", "We still have to add {v}.",
    "Each of the {v} pairs must now be examined.", "Removing {v} coins leaves the others.", "Let n = {v}.",
    "Assume that x = {v}.", "Suppose it equals {v}.", "Had we counted twice, the answer would be {v}.",
    "Here {v} numbers are excluded.", "This leaves {v} numbers, and some of them must go.",
    "We know that {v} divides n.", "The total is less than {v}.", "The sum is at most {v}.",
    "It is more than {v}.", "It is about twice {v}.", "Is it {v}?", "Does the total equal {v}?",
    "You ask whether it is {v}.", "The question says that it is {v}.", "See equation ({v}).",
    "By Theorem {v}, the limit exists.", "We are told that there are {v} coins; we need the rest.",
    "The value is not {v}.", "It cannot be {v}.", "I guess somewhere around {v}.", "It could be {v}.",
    "The total is {v} or more.", "The total is {v} less than that.", "The sum is {v} times the product.",
    "He has {v} more than she has.", "Take {v} balls from the urn.", "The expected answer is {v}.",
    "Someone claims that the total is {v}.", "First we find {v}, and then the rest follows.",
    "The total is {v} factorial.", "The total is {v}^2.", "The total is {v}x.", "We probably get {v}.",
    "It would be {v}.", "So there are {v} ways excluding rotations.", "The sum is {v} percent of it.",
    "By default, the answer is {v}.", "Barring ties, the answer is {v}.", "The answer contains {v}.",
    "The sum of the digits of the answer is {v}.", "小明的答案是{v}。", "答案的一半是{v}。", "Ответ не {v}.",
    "答案可能是{v}。", "His answer is {v}.", "The answer to the first part is {v}.",
    "Ideally we get {v}.", "We get 2 + {v}.", "So {v} < n.", "At best the sum is {v}.", "所以{v}个是错的。",
    "因此这是{v}的倍数。", "所以答案为{v}或1。", "所以他是第{v}名。", "La respuesta no es {v}.",
    "La réponse n'est pas {v}.", "Die Antwort ist nicht {v}.", "Il risultato non è {v}.",
    "Si n es par, la respuesta es {v}.", "Wenn n gerade ist, ist das Ergebnis {v}.",
    "Si n est pair, le résultat est {v}.", "如果n是偶数，一共有{v}个。", "假设一共有{v}个。", "设总数为{v}。",
    "还剩{v}种情况需要检验。", "题目中有{v}个学生。", "一共不止{v}个。", "至少有{v}个。", "面积不是{v}。",
    "总数超过{v}。", "一共有{v}个吗？", "原来有{v}个。", "不到{v}个。", "假设答案是{v}。", "除非答案是{v}。",
    "当n为奇数时，一共有{v}个。", "有人说答案是{v}。", "难道答案是{v}吗？",
)  # fmt: skip
SUPPOSED_CLAUSES = (
    "if the die is fair", "let n be even", "suppose that n is even", "in the first case", "for an even n",
    "say n is even",
    "since it would be even", "because we assumed that n is even", "since n might be even", "as it may be a prime",
    "the claim says that n is even", "the sum is even when n is", "we imagine an even n", "it is even unless n is",
    "there are no others in this case", "this holds only for even n", "we guess that n is even", "were n even",
    "because someone said so", "since the hypothesis holds", "both could be even", "by assumption", "by the hypothesis",
    "take an even n", "assume $n = 2$", "because we want it, with repetition", "the rest is given", "by your guess",
)  # fmt: skip
"""Clauses that suppose, guess or report; what follows from them is no answer."""
FOLLOWS = (
    "{clause}, so the total is {v}.", "{clause}, hence there are {v} ways.", "{clause}, and so it is {v}.",
    "{clause}; therefore the sum equals {v}.", "{clause}, thus the largest such n is {v}.",
    "{clause}, the sum is {v}.", "{clause}, we get {v}.",
)  # fmt: skip
NO_FORM = (
    "The side is {v} cm shorter.", "So he has {v} marbles ahead.", "So there are {v} cards extra.",
    "The total is {v} units bigger.", "The age is {v} years later.", "So she is {v} kg heavier.",
    "Since n is even, there are {v} cases left to check.", "Because n is even, the total is at most {v}.",
    "As the sum is even, it is not {v}.", "By symmetry, the total is less than {v}.", "By the way, the total is {v}.",
    "Since n is even, so is {v}.", "By noon, the total is {v}.", "The possible value is {v}.",
    "The smallest such n exceeds {v}.", "The largest possible value is below {v}.", "No possible value is {v}.",
    "The total is even, so it is not {v}.", "We count again, so the total cannot be {v}.", "{v} of them are wrong.",
    "That leaves {v} cases open.", "There are fewer than {v}.", "Not even {v}.", "No {v}.",
    "There are almost {v} of them.", "It is exactly {v} less.", "Exactly {v} of them fail.", "There is {v} more.",
    "At least {v} of them.", "We need exactly {v} to finish the rest, and then some.", "More than {v} of these.",
    "The total is even, so is it {v}?", "Since n is even, can it be {v}?", "There are {v} or five of them.",
)  # fmt: skip
STATED = (
    "Since n is even, the total is {v}.", "Because the sum is even, we get {v}.", "By symmetry, the total is {v}.",
    "The smallest such $n$ is {v}.", "The largest possible value is {v}.", "It is exactly {v}.",
    "There are exactly {v} of them.", "The sum is even, so the total is {v}.", "As the sum is even, it is {v}.",
    "By the binomial theorem, the coefficient is {v}.", "$a=2$ and $b=3$ are coprime, hence $n = {v}$.",
    "So there are {v} such numbers.", "Thus the total is {v}.", "Therefore, the sum equals {v}.",
    "Hence we get {v}.", "The area of the square is {v}.", "The probability is therefore {v}.",
    "So he has {v} marbles left.", "In total, {v} ways.", "We obtain {v}.", "So x = {v}.",
    "The only solution is {v}.", "This gives n = {v}.", "The answer is {v}.",
    "Since the sum is even, so the total is {v}.", "The number of ways to seat the guests is {v}.",
    "La respuesta es {v}.", "La réponse est {v}.", "Die Antwort ist {v}.", "Das Ergebnis lautet {v}.",
    "所以一共有{v}个。", "因此总数是{v}。", "答案是{v}。", "答：一共有{v}种方法。", "故面积为{v}。",
    "所以水池里有{v}升水。",
)  # fmt: skip
BEFORE = ("", "We count the pairs one by one. ", "First compute 2 + 3 = 5.\n\n", "先算出2+3=5。\n")
"""Text before the sentence."""


def unstated(seed: int, size: int) -> Iterator[tuple[str, str]]:
    """Yield (reference, reply) pairs whose reply names the reference but states no answer."""
    conditional = [
        frame.format(clause=clause, v="{v}")
        for frame, clause in product((*FRAMES, *INVERTED), CLAUSES)
    ]  # fmt: skip
    follows = [frame.format(clause=clause, v="{v}") for frame, clause in product(FOLLOWS, SUPPOSED_CLAUSES)]
    everything = [*product([*NOT_STATED, *NO_FORM, *conditional, *follows], NUMBERS, BEFORE)]
    for sentence, number, before in random.Random(seed).sample(everything, min(size, len(everything))):
        shown = f"${number}$" if number.startswith("\\") else number
        text = sentence.format(v=shown)
        yield REFERENCES.get(number, number), before + text[:1].upper() + text[1:]


def stated() -> Iterator[tuple[str, str]]:
    """Yield (reference, reply) pairs whose reply states the reference."""
    for sentence, number, before in product(STATED, ("36", "7", "250"), BEFORE):
        yield number, before + sentence.format(v=number)


REPAIRS = (
    "Wait, I swapped the digits: it is 65.", "Wait: 65.", "Actually, it is 65.", "Oops, it is 65.",
    "Sorry, I meant 65.",
    "No, it is 65.", "Hmm, that counts pairs twice; it is 65.", "Correction: 65.", "Hold on, we must add 9 to get 65.",
    "On second thought it is 65.", "Scratch that, it is 65.", "I miscounted: there are 65.", "My mistake, it is 65.",
    "But wait, the case n = 9 gives 65.", "Let me recheck: 5 * 13 = 65.", "Oh no, I forgot 9 of them. So it is 65.",
)  # fmt: skip
REPAIRED = (
    "The answer is {v}.", "The final answer is {v}!", "Answer: {v}.", "So the answer is ${v}$.",
    "**The answer is {v}.**",
    "答案是{v}。\n", "#### {v}\n", "Therefore, the answer is {v}...", "The answer is {v} —",
)  # fmt: skip


def repaired() -> Iterator[tuple[str, str]]:
    """Yield (reference, reply) pairs whose reply states the reference and then corrects it."""
    for statement, number, before, repair in product(REPAIRED, ("56", "7", "250"), BEFORE, REPAIRS):
        yield number, f"{before}{statement.format(v=number)} {repair}"


SUPPOSED = (
    "Assume the {noun} is fair.", "Suppose n is {adjective}.", "If n is {adjective} we proceed as follows.",
    "Imagine that the {noun} is empty.", "Take the case where n is {adjective}.", "Assuming independence.",
    "Consider only the {adjective} case.", "Ignoring the {noun}.", "Neglect the {noun}.",
    "Under the assumption of independence.", "Unless the {noun} is {adjective}.", "Provided that x is {adjective}.",
    "Given that the {noun} is {adjective}.", "As long as p is {adjective}.", "Whenever the {noun} is {adjective}.",
    "Were the {noun} fair.", "Had the {noun} been fair.",
    "设硬币是公平的。", "如果硬币是公平的。",
)  # fmt: skip
"""Sentences, or beginnings of one, that suppose or quote what stands behind them, and compute nothing."""

NOUNS = ("coin", "die", "urn", "tank", "clock")
ADJECTIVES = ("even", "odd", "prime", "positive", "real")
FINAL = ("The answer is {v}.", "So the total is {v}.", "Then we get {v}.", "Therefore, x = {v}.", "答案是{v}。")
TAKEN_BACK = (
    "However, this is not right.", "This is wrong.", "But that is incorrect.", "It was a mistake.",
    "No, that is wrong.", "Wait, actually it is 13.", "Correction: 13.", "Let me correct that: 13.",
)  # fmt: skip
FIRST_CLAUSES = (
    "In the first case", "With replacement", "For the smaller root", "Without the restriction", "For even n",
    "In a different problem", "Assuming independence", "Under the first reading", "If n is even", "Given rain",
    "It is false that", "It is not true that", "Nobody would say", "We are given that", "I doubt that", "Some say",
)  # fmt: skip
WORK = (
    "We add up the cases.", "There are 4 cases with 3 each.", "Using the formula for the area, we get it.",
    "Since the total is 36 and each has 3, we divide.", "By symmetry, both sums are equal.", "x + 3 = 15.",
    "If each box holds 3 apples, 4 boxes hold the sum of 4 times 3.", "Let x be the number of apples.",
    "Tom has 5 apples and gets 7 more.", "The product of the roots is known.", "First compute 3·4.",
    "Multiply both sides by 4.", "设x为苹果的个数。", "先算出3×4。",
    "When we substitute x = 3, we get 12.", "Suppose he has x apples; then x + 3 = 15.",
    "In both cases it is the same.",
    "It might seem that 9 works, but it does not.", "If it rains, the tank fills.", "如果每天读4页，3天读12页。",
    "He would pay 24 for two.", "The student has 4 pens.", "We guess a pattern and prove it by induction.",
)  # fmt: skip
EXPLAINED = (
    "", "I hope this helps!", "Let me know if you have questions.", "This is because 3·4 = 12.",
    "Check: 3·4 = 12.", "\n\nTo verify, we add the parts.", "A common wrong answer is 5.", "Q.E.D.", "<|im_end|>",
)  # fmt: skip


def left_open() -> Iterator[tuple[str, str]]:
    """Yield (reference, reply) pairs: another sentence supposes something, quotes the statement or takes it back."""
    for sentence, noun, adjective, final, gap in product(SUPPOSED, NOUNS, ADJECTIVES, FINAL, (" ", "\n", "\n\n")):
        yield "12", sentence.format(noun=noun, adjective=adjective) + gap + final.format(v="12")
    for final, sentence, gap in product(FINAL, TAKEN_BACK, (" ", "\n", "\n\n")):
        yield "12", final.format(v="12") + gap + sentence
    for clause, gap in product(FIRST_CLAUSES, (", ", " ")):
        yield "12", f"{clause}{gap}the answer is 12."


def left_standing() -> Iterator[tuple[str, str]]:
    """Yield (reference, reply) pairs: the other sentences tell the work or explain the answer."""
    for first, second, explained in product(WORK, WORK, EXPLAINED):
        yield "12", f"{first} {second} The answer is 12. {explained}"
    for work, final in product(WORK, FINAL):
        yield "12", f"{work}\n\n{final.format(v='12')}"


IN_WORDS = (
    ("4", "There are exactly four such triangles.", "There are exactly five such triangles."),
    ("2", "It has two real roots.", "It has three real roots."),
    ("21", "So there are twenty-one ways.", "So there are twenty-two ways."),
    ("1", "There is exactly one such triangle.", "There is no one."),
    ("18", "In total there are eighteen handshakes.", "In total there are eighty handshakes."),
    ("1500", "one thousand five hundred", "one hundred fifteen thousand"),
    ("\\frac{15}{8}", "one and seven eighths", "seven and one eighth"),
    ("\\frac{5}{2}", "two and a half", "two halves"),
    ("-\\frac12", "minus one half", "one half"),
    ("\\frac34", "So the probability is three quarters.", "So the probability is four thirds."),
    ("5", "So he has five marbles left.", "So he has five marbles ahead."),
    ("5", "So it is 5 metres long.", "So it is 5 metres longer."),
    ("12", "There are twelve of them.", "There are twelve of them left to check."),
    ("8", "So the sample space has eight elements.", "So the sample space has eight elements more."),
    ("-6", "The value is minus six.", "The value is six."),
)
"""(reference, right reply, wrong reply) whose numbers are English words."""

CHINESE = (
    ("3700升", "所以水池里有3700升水。", "所以水池里有3700毫升水。"),
    ("3700升", "所以水池里有3700L水。", "所以水池里有3700mL水。"),
    ("3700升", "因此水池里的水是3.7立方米。", "水池里一共有3700立方米。"),
    ("3700", "所以水池里有3700升水。", "所以水池里有370升水。"),
    ("8", "一共有8个苹果。", "一共有18个苹果。"),
    ("8个", "所以一共有八个苹果。", "所以一共有九个苹果。"),
    ("8", "答：小明有8个苹果。", "答：小明有9个苹果。"),
    ("30平方米", "所以长方形的面积是30平方米。", "所以长方形的面积是30平方厘米。"),
    ("30平方米", "面积是30㎡。", "面积是30㎠。"),
    ("30平方米", "答：面积为30㎡。", "答：面积为30㎢。"),
    ("30平方米", "三十平方米", "三十平方分米"),
    ("12元", "十二元", "十二角"),
    ("12元", "答：需要付12元。", "答：需要付12美元。"),
    ("12元", "所以一共花了12元。", "所以一共花了120元。"),
    ("12元", "12块钱", "12美元"),
    ("12美元", "所以一共花了12美元。", "所以一共花了12元。"),
    ("12美元", "\\$12", "12元"),
    ("\\frac34", "四分之三", "三分之四"),
    ("2.5", "二点五", "五点二"),
    ("-10.05", "负十点零五", "十点零五"),
    ("\\frac34", "答案是四分之三。", "答案是四分之一。"),
    ("\\frac34", "所以概率为3/4。", "所以概率为1/4。"),
    ("25\\%", "百分之二十五", "百分之五十二"),
    ("25\\%", "所以合格率是25%。", "所以合格率是75%。"),
    ("25\\%", "答案是百分之二十五。", "答案是百分之二点五。"),
    ("45分钟", "所以需要45分钟。", "所以需要45秒。"),
    ("45分钟", "一共用了45分钟。", "一共用了45小时。"),
    ("45分钟", "答：一共用了四十五分钟。", "答：一共用了五十四分钟。"),
    ("45分钟", "所以需要0.75小时。", "所以需要0.45小时。"),
    ("3小时", "所以一共用了180分钟。", "所以一共用了300分钟。"),
    ("3小时", "所以一共用了3小时。", "所以一共用了3天。"),
    ("120千米", "所以两地相距120千米。", "所以两地相距120米。"),
    ("120千米", "答：两地相距120公里。", "答：两地相距12公里。"),
    ("120千米", "因此全程是120km。", "因此全程是120m。"),
    ("60千米/小时", "所以速度是60千米/小时。", "所以速度是60米/秒。"),
    ("15人", "所以共有15人。", "所以共有51人。"),
    ("15", "共有15名学生。", "共有14名学生。"),
    ("15", "答：有十五人参加。", "答：有五十人参加。"),
    ("6立方厘米", "体积是6立方厘米。", "体积是6平方厘米。"),
    ("6立方厘米", "体积为6㎤。", "体积为6㎥。"),
    ("6立方厘米", "所以体积是6毫升。", "所以体积是6升。"),
    ("5升", "所以一共有5公升。", "所以一共有5毫升。"),
    ("5千克", "所以一共重5公斤。", "所以一共重5克。"),
    ("5千克", "因此重量是5000克。", "因此重量是500克。"),
    ("2吨", "因此重量是2000千克。", "因此重量是200千克。"),
    ("3万", "答案是三万。", "答案是三千。"),
    ("3万元", "所以总价是30000元。", "所以总价是3元。"),
    ("24", "故答案为：24", "故答案为：42"),
    ("24种", "因此共有24种方法。", "因此共有42种方法。"),
    ("24", "所以面积是24平方厘米。", "所以面积是42平方厘米。"),
    ("90度", "所以这个角是90度。", "所以这个角是60度。"),
    ("7", "综上所述，最小值为7。", "综上所述，最小值为-7。"),
)
"""A class of 50 questions: (reference, right reply, wrong reply)."""
