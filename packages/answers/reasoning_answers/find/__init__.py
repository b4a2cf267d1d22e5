"""Finds the answer in a response: after the reasoning (`answers.reasoning`), in the last box, label or formula.

The entry point is `verdict`. Everything here is pure, takes time linear in the text, and parses no mathematics.

    extract     the answer in the final part
    beside      the context of a box; boxes that together are one answer
    statements  words and marks that announce an answer; whether a sentence states its value
    guards      words that deny, doubt, suppose or retract
    choice      the letter of a multiple choice
    values      numbers, formulas and sentences
"""
