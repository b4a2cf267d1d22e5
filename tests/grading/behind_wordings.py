r"""Wordings of an explanation, a check and closing words behind a right box, and their wrong twins.

{t} is the explanation or the check of an exercise of `behind_answers`, without its last mark. Development is done on
the wordings with even numbers (`half=0`); those with odd numbers (`half=1`) are held out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.grading.behind_answers import EXERCISES, Reply

RIGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "Chinese": {
        "explanation": (
            "我来解释一下：{t}。", "为什么是这个结果呢？{t}。", "理由很清楚：{t}。", "解题思路是这样的，{t}。",
            "详细过程如下。\n{t}。", "原因：{t}。", "怎么得到的呢？{t}。", "让我们看看是怎么算出来的：{t}。",
            "分析如下：\n1. 读懂题意；\n2. {t}；\n3. 写出结果。", "因为{t}，这就是结果的由来。", "【解析】{t}。",
            "这里说明一下：{t}。", "推理过程：{t}，于是就有了上面的结果。", "从题目条件出发，{t}。",
            "你可能会问为什么，其实道理不复杂：{t}。", "根据题意，{t}，由此得到上面的答案。", "**解释**\n\n{t}。",
            "想知道怎么来的吗？{t}。", "做法：{t}。", "依据是课本上的公式：{t}。", "关键的一步是：{t}。",
            "我的思考过程：{t}。", "我们先看已知条件，{t}。", "具体来说，{t}。",
            "说明理由：{t}，所以上面的答案成立。", "换句话说，{t}。", "用文字叙述就是：{t}。",
            "步骤如下：\n\n第一步，审题。\n第二步，{t}。", "道理在这里：{t}。", "下面给出完整的推导。{t}。",
            "简单解释：{t}，因此得到这个答案。", "列式的根据：{t}。",
        ),
        "check": (
            "验算一下，{t}，没有错误。", "我们再验证一次：{t}，答案正确。", "检验：{t}，结果没问题。",
            "代回去看看，{t}，成立。", "重新算一遍，{t}，结果相同。", "回头检查：{t}，与题意吻合。", "检查无误。",
            "我又核对了一遍，{t}，没有发现问题。", "用逆运算检验：{t}，说明计算是对的。", "{t}，可见答案是正确的。",
            "经过检验，答案符合要求。", "再核对一下：{t}，完全正确。", "验证：{t}，两边相等。",
            "把答案放回题目里，{t}，说得通。", "估算一下，{t}，结果合理。", "单位检查过了，没有错。",
            "自查：{t}，和刚才的结果一致。", "复核：{t}，准确无误。", "检验过程：{t}，所以答案没有错。",
            "换一种方法再算：{t}，得数一样。", "我检查了每一步，都没有毛病。", "验算结果：{t}，与原来的答案相同。",
            "用估算也能验证，{t}，数值合适。", "倒推回去：{t}，条件都满足。", "通过验算可知结果可信。",
            "再看一遍题目，要求的都求出来了。", "检查：{t}。对的！", "验算：{t}，没算错。",
            "双重检查：{t}，毫无问题。", "最后检查一下单位，单位也没有写错。", "代入检验，{t}，左右相等，答案正确。",
            "再一次验算，结果仍然成立。",
        ),
        "closing": (
            "这下明白了吗？", "还有什么不懂的地方吗？", "要不要再看一道类似的题？", "你能自己再做一遍吗？",
            "是不是挺有意思的？", "小朋友们，听懂了吗？", "这就是本题的全部解答。", "这就是整道题的解题过程。",
            "以上便是我的解答，希望你喜欢。", "需要我换一种方法讲解吗？", "还想继续练习吗？",
            "如果你有别的问题，尽管问我。", "动手试试吧！", "这道题你会了吗？", "要是还不明白，可以再问我。",
            "你还有其他问题吗？", "大家都学会这种方法了吗？", "记得答题时写清楚单位哦。",
            "这种题型考试经常出现，要掌握好。", "是不是很容易呢？", "这样解释清楚吗？", "下次你也可以这样算。",
            "继续努力，你很棒！", "这就是求这类问题的方法。", "多做几道题就会更熟练。", "明白这个道理了吧！",
            "你看，数学并不难。", "这题就讲到这里。", "想再挑战一道更难的吗？", "有不清楚的步骤可以告诉我。",
            "答题完毕，谢谢！", "你觉得这个方法怎么样？",
        ),
    },
    "English": {
        "explanation": (
            "Here is the explanation: {t}.", "Why? {t}.", "The reasoning goes like this: {t}.", "Reasoning: {t}.",
            "How did we get this? {t}.", "Details: {t}.", "Let us see where this comes from. {t}.", "In words: {t}.",
            "**Step-by-step:**\n1. Read the data.\n2. {t}.\n3. Write down the result.",
            "This works for a simple reason: {t}.", "The idea behind it: {t}.", "My working: {t}.",
            "To justify this: {t}.", "Here's how: {t}.", "Background: {t}.", "You may wonder why; {t}.",
            "The reason is that {t}.", "Note how it came about: {t}.", "In more detail, {t}.",
            "Put differently, {t}.", "The derivation is short. {t}.", "As for the method: {t}.",
            "Solution path: {t}.", "That follows from the data: {t}.",
        ),
        "check": (
            "Let me verify: {t}. Good.", "Checking once more: {t}. It holds.", "To be safe, we check: {t}.",
            "Proof by substitution: {t}, so it fits.", "Test: {t}. ✓", "A second look: {t}, no problem there.",
            "All conditions are met.", "We double-checked every step and found no mistake.", "Let's confirm: {t}.",
            "{t}, which confirms the answer.", "The units agree as well.", "Working backwards: {t}.",
            "It all fits together: {t}.", "No errors found.", "The numbers add up: {t}.",
            "Cross-check: {t}, the same as before.", "Everything is in order.",
            "Plugging the value back in gives a true statement.", "A rough estimate gives about the same.",
            "One can see that this is right: {t}.", "Verified: {t}.", "The result passes every test.",
            "Nothing is missing.", "An independent computation gives the same result.",
        ),
        "closing": (
            "Does that make sense?", "Shall I explain it another way?", "Is everything clear now?",
            "Did you get the same?", "Want to try a similar one?", "Do you need more help?",
            "That wasn't so hard, was it?", "See how easy it is?", "That is how it is done.",
            "This is the complete solution.", "Have fun with the next one!", "Just ask if something is unclear.",
            "Keep practising!", "Don't forget to write the unit.", "And that's all you need.", "I enjoyed this one.",
            "You can use the same trick elsewhere.", "Any questions?", "Can you do the next one yourself?",
            "Nice problem, isn't it?", "End of solution.", "If you like, we can go through it again.",
            "Take your time with it.", "Best of luck!",
        ),
    },
}  # fmt: skip
"""Language → kind → wordings that leave the answer standing."""

WRONG: dict[str, tuple[str, ...]] = {
    "Chinese": (
        "验算一下，有问题。", "检查后发现有错误。", "检验：{t}，不对。", "再算一次：结果不一样。",
        "重新算一遍，和前面的不同。", "我再检查一遍，好像有问题。", "再检查一遍。", "我重新算一下。", "这题没做完。",
        "没有考虑到所有情况。", "我算错了吗？", "是不是{w}？", "答案是不是{w}呢？", "应该是{w}吧？", "难道是{w}？",
        "对吗？", "真的是这样吗？", "这样对不对？", "没有问题吗？", "没错吧？", "结果没有问题吧。",
        "除了单位，其他没有问题。", "只有第一步没有问题。", "前面两步没有错，最后一步错了。",
        "验算：{t}，不符合题意。", "代入后不成立。", "检查：与题意不符。", "不符合题目要求。", "没有满足题目要求。",
        "不是没有问题。", "并不是没有错误。", "并非毫无问题。", "怎么会没有问题呢？", "这就是错误的答案。",
        "这就是打折前的结果。", "这就是第一步的结果。", "这就是小明的答案。", "这就是一半的结果。",
        "你确定是这样吗？", "为什么不是{w}呢？", "为什么不减去{w}呢？", "为什么不对呢？", "单位是不是错了？",
        "会不会算错了？", "是不是漏了一步？", "要不要再乘以二？", "单位是不是写错了？", "要不要再减去底面积？",
        "这个结果合理吗？", "可能吗？", "我是不是看错题目了？", "你发现哪里错了吗？", "大家看出问题了吗？",
        "结果真的没有错吗？", "如果没有算错，应该就是这个结果。", "希望没有算错。", "但愿没有问题。",
        "也许没有问题。", "看起来没有问题，其实少了一步。", "大部分没有问题，单位不行。", "需要我改正吗？",
        "需要我重新算吗？", "要不要我再算一遍？", "你觉得答案对吗？", "同学们，老师算对了吗？", "你能找出错误吗？",
        "我漏看了条件，明白了吗？", "再验算：{t}，对不上。", "验算没有通过。", "检验没有成功。",
        "这还不是最后的结果。", "没有算完，还要加上另一半。", "答案不完整，缺少单位。", "没错，是{w}。",
        "没有问题，答案是{w}。", "学会了吗？答案是{w}。", "是不是很简单？所以是{w}。", "没错，应该是{w}。",
        "和前面一样错了。", "再算一次，和前面一样不对。", "验算：结果正确的是{w}。", "没有一步没有问题。",
        "没有一个条件没有错。", "检查单位，没有单位。", "没有人说没有问题。", "这样真的没问题？", "问题不是没有。",
        "这难道没有问题？", "明白为什么不对了吗？", "还需要再除以三吗？", "你知道错在哪里吗？", "谁能说说哪里不对？",
        "再算一次，得到{w}，结果正确。", "重新算一遍得{w}，与题意相符。", "有同学不这样做，你觉得呢？",
    ),
    "English": (
        "Let me verify: it does not hold.", "Checking once more: something is off.",
        "Cross-check: not the same as before.", "No problem, but the answer is {w}.", "Is it {w}?", "Or is it {w}?",
        "Shall I correct it?", "Should I redo this?", "Is that right?", "Does that look right to you?", "Am I sure?",
        "Wasn't it {w}?", "Did I make a mistake?", "Reasoning: it should be {w}.", "Here is why: it is {w}.",
        "Explanation: the answer is {w}.", "So {w}.", "Reasoning: {w}.", "Here is why it is wrong: {t}.",
        "Corrected: {w}.", "No errors found except one.", "We found a mistake.", "Not all conditions are met.",
        "The units do not agree.", "Something is missing.", "Everything but the sign is right.",
        "This is only the first step.", "The value is {w}.", "x = {w}", "Hence y = {w}.",
    ),
}  # fmt: skip
"""Language → sentences behind a right box that deny, doubt or replace it; {w} is another value."""

_LEADS = ("\\boxed{{{v}}}\n\n{t}", "$\\boxed{{{v}}}$。{t}", "答案：\\boxed{{{v}}}\n\n{t}")
_LEADS_IN_ENGLISH = ("\\boxed{{{v}}}\n\n{t}", "$\\boxed{{{v}}}$. {t}", "The answer is $\\boxed{{{v}}}$.\n\n{t}")
_PER_WORDING = 4
"""Number of exercises with which each wording is combined."""


def right(language: str, kind: str, half: int) -> Iterator[Reply]:
    """Yield right replies with a wording of `kind` behind the box. half: 0 for wordings of even numbers, else 1."""
    leads = _LEADS if language == "Chinese" else _LEADS_IN_ENGLISH
    exercises = EXERCISES[language]
    for number, wording in list(enumerate(RIGHT[language][kind]))[half::2]:
        for step in range(_PER_WORDING):
            exercise = exercises[(number * _PER_WORDING + step * 7) % len(exercises)]
            text = exercise.check if kind == "check" else exercise.explanation
            behind = wording.format(t=text.rstrip("。.✓ "))
            yield Reply(exercise.answer, leads[(number + step) % 3].format(v=exercise.answer, t=behind), wording)


def wrong(language: str) -> Iterator[Reply]:
    """Yield replies whose box is right and taken back, doubted or replaced behind it, with each exercise."""
    leads = _LEADS if language == "Chinese" else _LEADS_IN_ENGLISH
    for exercise in EXERCISES[language]:
        for number, wording in enumerate(WRONG[language]):
            behind = wording.format(t=exercise.check.rstrip("。.✓ "), w=exercise.other)
            yield Reply(exercise.answer, leads[number % 3].format(v=exercise.answer, t=behind), wording)
