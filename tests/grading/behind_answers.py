r"""Replies with the answer in a box and text behind it, from parts: right ones, and twins that state another value.

    right    a box, then an explanation, a check, an explanation and a closing, or a closing
    twins    the same texts, ending in a sentence that states another value, in each form of a conclusion

Development is done on the exercises with even numbers (`half=0`); those with odd numbers (`half=1`) are held out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Exercise(NamedTuple):
    """An answer, another value of its kind, an explanation of the answer and a check of it."""

    answer: str
    other: str
    explanation: str
    check: str


class Reply(NamedTuple):
    """A reply to a question whose reference is the first value. part: what stands behind the box."""

    reference: str
    text: str
    part: str


def _exercises(between: str, text: str) -> tuple[Exercise, ...]:
    """Read exercises of four fields with | between them, parted by empty lines. between: what joins two lines."""
    blocks = (between.join(block.splitlines()) for block in text.strip().split("\n\n"))
    return tuple(Exercise(*block.split("|")) for block in blocks)


_ENGLISH = _exercises(" ", r"""
\frac{2}{5}|\frac{3}{5}|A bag holds 4 red and 6 blue balls, so there are 10 balls in all. Each ball is equally likely
to be drawn. The favourable draws are the 4 red ones, and 4 out of 10 reduces to two fifths.|The chance of blue is
6/10, and 6/10 + 4/10 = 1.

\frac{7}{12}|\frac{5}{12}|The denominators 3 and 4 have 12 as their least common multiple. One third becomes four
twelfths and one quarter becomes three twelfths. Adding the numerators gives seven twelfths.|Numerically, 1/3 + 1/4 is
about 0.583, and 7/12 is about 0.583 as well.

2^{12}|2^{11}|Every one of the twelve lamps has two states. The states of different lamps do not depend on each other.
Multiplying twelve factors of 2 gives the stated power.|With two lamps the same argument gives 4 states, which one can
list by hand.

5^{6}|5^{5}|Six positions have to be filled, and each takes any of five letters. Repetition is allowed, so no factor
shrinks.|For one position there would be 5 words, as it should be.

x=9|x=7|First we moved the constant to the right-hand side. Next we divided both sides by the coefficient of x. Since
the function is linear, there is exactly one root.|Substituting x = 9 back: 2·9 - 3 = 15, which is what the right-hand
side says.

x=-3|x=3|We squared both sides and collected the terms. The quadratic factor has no real zeros, so only the linear
factor matters.|Plugging in: (-3)^3 + 27 = -27 + 27 = 0. ✓

49\pi|14\pi|The diameter is 14, hence the radius is half of it. Squaring the radius and multiplying by pi gives the
area. The problem wants an exact value, so pi stays.|The circumference would be 14π, consistent with a radius of 7.

12\pi|36\pi|The arc is a third of the full circle. The full circle has length 36π because the radius is 18.|Three such
arcs make up 36π, the whole circle.

15 \text{ cm}|15 \text{ m}|The perimeter is shared by four equal sides. So we divided the length of the wire by four.
Lengths were given in centimetres throughout.|Four sides of 15 cm each need 60 cm of wire.

90 km/h|90 m/s|The train covers the distance in two and a half hours. Dividing the distance by the time gives the
speed.|At this speed, 2.5 hours take it 225 km far.

35\%|65\%|Seven of the twenty seats are taken. As a share of the total this is 7/20. Multiplying by 100 turns the
fraction into a percentage.|0.35 × 20 = 7, which is the number of taken seats.

12.5\%|87.5\%|One slice is an eighth of the cake. An eighth is half of a quarter, and a quarter is 25 percent.|Eight
such slices make 100%.

4x+7|4x|We opened the brackets and collected like terms. The quadratic terms cancel each other. What remains is linear
in x.|At x = 0 both the original and the simplified expression equal 7.

x^2-6x+5|x^2-6x|The roots are 1 and 5, so the polynomial is a product of two linear factors. Expanding this product
yields the coefficients.|The sum of the roots is 6 and their product is 5, as Vieta's formulas say.

B|D|Option A forgets the initial velocity. Option C has the wrong units. Option D holds only without friction. Thus
only one statement survives.|For t = 0 the second option gives the height at the start.

C|A|The passage says that the river froze early that year. Nothing in the text supports the other readings. The third
statement repeats the author's claim in other words.|The author repeats this claim in the last paragraph.

(2,5)|(2,5]|The logarithm needs a positive argument, so x must exceed 2. The root in the denominator needs x below 5.
Both ends are excluded.|At x = 3 both conditions hold, and at x = 6 the second one fails to hold, as expected.

[-1,4)|(-1,4]|We solved each inequality separately and intersected the results. The left end belongs to the set
because the first inequality is not strict.|Trying x = 0: both inequalities are true there.

(3,-4)|(-4,3)|The line and the circle touch in one point. Setting the two expressions equal leads to a quadratic with
a double root at x equal to 3. Its y-coordinate follows from the equation of the line.|The distance from the origin is
sqrt(9 + 16) = 5, the radius of the circle.

(1,0,2)|(0,1,2)|The vector has to be orthogonal to both rows. We chose the free variable as 1 to keep the entries
whole.|The dot products are 2 - 2 = 0 and 4 - 4 = 0.

3:4|4:3|There are 12 cats and 16 dogs. Both numbers are divisible by 4. After the division the terms have no common
factor.|12 · 4 = 48 and 16 · 3 = 48, so the proportion is right.

5:2|2:5|The longer rope measures 250 cm and the shorter one 100 cm. We cancelled the common factor 50.|If the shorter
one is 2 parts, then the longer one is 5 parts.

144|148|A dozen dozens are asked for. Twelve rows of twelve eggs fill the crate. Multiplying 12 by 12 gives the number
of eggs.|144 / 12 = 12, which is the number of rows.

1,250|1,520|The rent is 850 and the other costs are 400. No other expenses are mentioned in the problem. Adding both
amounts gives the monthly total.|1,250 - 400 = 850, the rent.

3\sqrt{2}|2\sqrt{3}|The square has side 3. Its diagonal is the hypotenuse of a right triangle with two equal legs. By
the Pythagorean theorem the diagonal squared is 18.|Squaring: 9 · 2 = 18, as required.

-8|8|Subtracting a larger number from a smaller one leaves a negative number. We moved 15 steps to the left, starting
from 7.|-8 + 15 = 7, so we are back at the start.

\$36|\$24|The coat costs 60 dollars before the sale. The shop takes off two fifths. Two fifths of 60 dollars is 24
dollars, and the customer pays the rest.|36 + 24 = 60, the full price.

8 days|18 days|Twelve workers need six days, that is, 72 worker-days. Nine workers share the same amount of work. We
assumed that all work at the same pace.|9 workers × 8 days = 72 worker-days.

\text{True}|\text{False}|An even number has a factor 2. The product of any integer with an even number keeps that
factor. Hence the product is even, whatever the other number is.|For example, 4 times 7 is 28, which is even.

\{1,3,9\}|\{1,3\}|We listed the divisors in increasing order. Each divisor of a power of 3 is itself a power of
3.|Their product is 27, as the formula for the product of divisors predicts.
""")  # fmt: skip

_CHINESE = _exercises("", r"""
24元|24角|每本书8元。小丽买了3本。总价等于单价乘数量。8乘3就是24。|24除以3等于8，正好是单价。

7.5元|7.5角|一千克梨的价钱是2.5元。妈妈买了3千克。用单价乘数量来计算。|7.5÷3=2.5，与单价一致。

450升|450毫升|水箱的底面积是90平方分米。水深5分米。底面积乘水深得到体积。1立方分米就是1升。|450除以90等于5，符合水深。

60立方厘米|60平方厘米|长方体的长是5厘米，宽是4厘米，高是3厘米。体积是这三个数的乘积。|60÷5÷4=3，正好是高。

3:5|5:3|男生有18人，女生有30人。两个数的最大公因数是6。前项和后项同时除以6。|18乘5等于90，30乘3也等于90。

2:7|7:2|盐有10克，水有35克。把这两个数同时除以5就可以化简。|10×7=70，35×2=70，比例成立。

对|错|平行四边形的对边平行且相等。长方形的对边也平行且相等。长方形具备平行四边形的全部特征。|例如长6厘米、宽4厘米的
长方形，两组对边都平行。

错|对|两个锐角的和可以小于90度。例如20度加30度等于50度。50度的角是锐角。|再看一个例子，10度加10度等于20度。

45℃|45℉|水温原来是20℃。加热后升高了25℃。把两个数相加就得到现在的温度。|45-25=20，就是原来的水温。

20秒|20分|火车每秒行25米。它要走过500米。时间等于路程除以速度。|25×20=500，与路程相符。

40分钟|40秒|他7时50分出门。8时30分到校。两个时刻相差40分。|7时50分再过40分钟是8时30分。

6天|6小时|工程总量看作单位1。甲队每天完成十分之一，乙队每天完成十五分之一。合作时两队的效率要相加。|6乘六分之一等于1，
正好完成。

3/4|1/4|把蛋糕平均分成8块。小明吃了2块。剩下的6块占总数的八分之六，约分后分子是3，分母是4。|八分之六加八分之二等于1。

\frac{5}{9}|\frac{4}{9}|全班有45人。其中女生有25人。用女生人数除以总人数，再约分。|女生占九分之五，男生占九分之四，
合起来是1。

40%|60%|果园里有50棵果树。苹果树有20棵。求百分率就是用部分除以整体。|50的40%是20，与题意一致。

62.5%|37.5%|投篮16次，投中10次。命中率等于投中次数除以总次数。|16×62.5%=10，与投中次数相同。

x=6|x=8|先把常数项移到右边。再把两边同时除以系数。移项时要变号。|把x=6代入方程，左边是18，右边也是18。

x=-5|x=5|方程两边同时加上2。然后合并同类项。系数化为1就得到方程的根。|代入得2×(-5)+10=0，等式成立。

36平方米|36米|正方形花坛的边长是6米。面积等于边长乘边长。面积的单位用平方米。|36÷6=6，就是边长。

32厘米|60平方厘米|长方形的长是10厘米，宽是6厘米。周长是长与宽的和的两倍。长与宽的和是16厘米。|32÷2=16，与长宽之和一
致。

15个|12个|盒子里原来有40个球。取走了25个。余下的个数用减法计算。|15+25=40，和原来一样多。

28人|82人|大客车坐了20人，小客车坐了8人。两车的人数加在一起就是总人数。|28减20等于8，正是小客车的人数。

72千米/时|72米/秒|汽车4小时行了288千米。速度等于路程除以时间。|72×4=288，与路程一致。

1.5千米|1.5米|小红每分钟走75米。她走了20分钟。两数相乘是1500米。1000米是1千米。|1500÷20=75，与她的速度一致。

B|C|A项把因果关系颠倒了。C项与原文的第二段无关。D项夸大了作者的看法。|第三段的最后一句可以作为依据。

D|A|题目要求找出轴对称图形。圆沿任何一条直径对折都能重合。其余三个图形沿任何直线对折都无法重合。|把圆对折一次就能看
出来。

-9|9|3减去12。被减数比减数小。差是一个负数，绝对值是9。|-9加12等于3。

零下8℃|8℃|傍晚的气温是2℃。夜里下降了10℃。从2℃往下数10格，就到了零下。|-8+10=2，与傍晚的气温一致。

星期五|星期三|今天是星期二。17除以7余3。从星期二往后数3天。|往回数3天又是星期二。

12\pi|6\pi|圆的直径是12厘米。周长等于直径乘圆周率。题目要求结果保留π。|周长除以圆周率等于12，正是直径。
""")  # fmt: skip

_CLOSINGS_IN_ENGLISH = (
    "I hope that makes the idea clear.", "Please ask if a step is unclear.", "That is all there is to it.",
    "And we are done!", "Everything is consistent.", "The same method works for similar exercises.",
    "Other methods lead to the same result.", "A drawing makes this easier to see.", "Nothing else is needed.",
    "This finishes the exercise.", "**Tip:** write down the units in every line.", "Thank you for the nice puzzle!",
    "A calculator confirms it.", "The result looks reasonable.", "No rounding was necessary.", "$\\square$",
    "Well done if you found it yourself!", "The main idea was to translate the words into symbols.",
    "It is a good habit to estimate first.", "Try the next exercise in the same way.",
    "Notice how little computation was necessary.", "This is exactly what the question asks for.",
    "All given data were used.", "We never had to use the extra information.", "So this is our final result.",
    "**Explanation:** see the lines above.", "Keep up the good work!", "There is no other possibility.",
    "Therefore the claim is proved.", "Would you like to see another example?",
)  # fmt: skip
_CLOSINGS_IN_CHINESE = (
    "希望这样讲你能明白。", "有疑问随时告诉我。", "这样就做完了。", "解题的关键是找到数量关系。", "计算过程见上。",
    "这道题考查的是基本概念。", "同类题目都可以这样做。", "大家可以自己动手试一试。",
    "用画图的方法也能得到同样的结果。",
    "平时要多练习。", "祝学习进步！", "解答完毕。", "以上就是全部过程。", "做题时要注意单位。",
    "这种方法叫做逆推法。",
    "先理清思路，再动笔计算。", "**小结：** 读懂题意最重要。", "思路很清楚。", "此题得解。", "这类应用题很常见。",
    "如需更详细的步骤，请告诉我。", "学会这个方法很有用。", "验算一下，结果合理。", "计算时用到了乘法的意义。",
    "答案与估算接近。", "因此题目得到解决。", "这就是最终结果。", "由此完成解答。", "关键在于统一单位。",
    "画出线段图会更直观。",
)  # fmt: skip

FORMS = {
    "English": (
        "**Final Answer:** ${w}$", "Final Answer: {w}", "**Answer:** ${w}$", "Answer: {w}.", "The answer is ${w}$.",
        "So the final answer is ${w}$.", "So we get ${w}$.", "So in fact we get {w}.",
        "Therefore we get ${w}$.",
        "This gives ${w}$.", "This gives us {w}.", "Therefore ${w}$.", "Thus, {w}.", "$${w}$$", "\\[ {w} \\]",
        "**{w}**",
        "Thus, the result is ${w}$.", "Hence the total is ${w}$.", "The required value is ${w}$.", "So it is {w}.",
        "For the stated question we need ${w}$.", "With the given data, this is ${w}$.", "We obtain ${w}$.",
        "Hence, we find ${w}$.", "So our result is {w}.", "In conclusion, ${w}$.", "We conclude that it is ${w}$.",
        "Consequently, the value is {w}.", "That makes {w}.", "which gives ${w}$", "Overall, this yields ${w}$.",
        "The solution is ${w}$.", "The final result is therefore ${w}$.", "**Result:** {w}", "Solution: ${w}$",
    ),
    "Chinese": (
        "因此，答案是{w}。", "所以结果是{w}。", "综上，结果为{w}。", "所以是{w}。", "也就是{w}。",
        "即{w}。", "最终答案：{w}。", "答：{w}。", "**答案：{w}**", "结果是{w}。",
        "答案是${w}$。", "所以${w}$。", "因此得{w}。", "由此得到{w}。",
        "综上所述，答案为{w}。", "故答案为{w}。", "于是得到{w}。", "可得{w}。", "${w}$", "**{w}**", "从而求得{w}。",
        "故为{w}。", "最后得到{w}。", "因此等于{w}。", "这样得出{w}。",
    ),
}  # fmt: skip
"""Sentences that state the value {w}."""

_LEADS = (
    "So we obtain $\\boxed{{{v}}}$.\n\n{t}", "$$\\boxed{{{v}}}$$\n\n{t}", "The answer is $\\boxed{{{v}}}$. {t}",
    "\\boxed{{{v}}}\n\n{t}",
)  # fmt: skip
_LEADS_IN_CHINESE = (
    "$\\boxed{{{v}}}$\n\n{t}", "答案：\\boxed{{{v}}}\n\n解释：{t}", "所以结果是 $\\boxed{{{v}}}$。{t}",
    "\\boxed{{{v}}}\n\n{t}",
)  # fmt: skip
EXERCISES: dict[str, tuple[Exercise, ...]] = {"English": _ENGLISH, "Chinese": _CHINESE}

_LANGUAGES: dict[str, tuple[tuple[Exercise, ...], tuple[str, ...], tuple[str, ...]]] = {
    "English": (_ENGLISH, _CLOSINGS_IN_ENGLISH, _LEADS),
    "Chinese": (_CHINESE, _CLOSINGS_IN_CHINESE, _LEADS_IN_CHINESE),
}


def right(language: str, half: int) -> Iterator[Reply]:
    """Yield right replies with text behind the box, of the exercises and closings whose number is even or odd."""
    exercises, closings, leads = _LANGUAGES[language]
    exercises, closings = exercises[half::2], closings[half::2]
    for number, (exercise, closing) in enumerate(zip(exercises, closings, strict=True)):
        behind = {
            "explanation": exercise.explanation,
            "check": exercise.check,
            "explanation and closing": f"{exercise.explanation}\n\n{closing}",
            "closing": closing,
        }
        for part, text in behind.items():
            lead = leads[(number + len(part)) % len(leads)]
            yield Reply(exercise.answer, lead.format(v=exercise.answer, t=text), part)


def twins(language: str, half: int) -> Iterator[Reply]:
    """Yield replies whose box is right and whose text behind it states another value, in each form, with and without
    an explanation and a closing beside it.
    """
    exercises, closings, leads = _LANGUAGES[language]
    for number, exercise in enumerate(exercises[half::2]):
        for count, form in enumerate(FORMS[language]):
            stated = form.format(w=exercise.other)
            closing = closings[half::2][(number + count) % len(closings[half::2])]
            for part, text in {
                "conclusion": stated,
                "explanation and conclusion": f"{exercise.explanation}\n\n{stated}",
                "conclusion and closing": f"{stated}\n\n{closing}",
            }.items():
                lead = leads[(number + count) % len(leads)]
                yield Reply(exercise.answer, lead.format(v=exercise.answer, t=text), part)
