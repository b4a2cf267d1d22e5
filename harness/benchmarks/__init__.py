"""From a benchmark's card to rendered questions with fixed references.

Enter by `catalogue.load` for a card and `questions.build` for its questions; `data` says whether rows are here.
"""
