"""Finds the answer in a response: behind the reasoning, in the last box, phrase or formula.

Enter by `verdict`. Everything here is pure, takes time linear in the text, and parses no mathematics.

    reasoning   where the final part of a response begins
    extract     the answer in the final part
    sentences   forms of sentences that state an answer; in Chinese: chinese
    rest_of_sentence    what may follow an answer in its own sentence
    behind      sentences behind an answer, which may correct it
    several     boxes that together are one answer
    choice      the letter of a multiple choice
    refusals    words that deny a value
    stated      all values that a text states before its answer
"""
