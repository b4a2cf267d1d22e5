"""Where the answer stands in a response: behind the reasoning, in the last box, phrase or formula.

Enter by `verdict`; pure, linear in the text, parses nothing. `reasoning` says where the final part begins, `extract`
finds the answer in it, `refusals` knows the words that deny a value, `several` joins boxes that are one answer,
`choice` finds the letter of a multiple choice, `stated` lists all values that a text states on its way.
"""
