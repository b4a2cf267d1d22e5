"""From a benchmark's card to the questions as they are sent, with their reference answers.

    card ──▶ sources (rows) ──▶ drafts (ids, references) ──▶ questions (prompt rendered) ──▶ a run

Other packages enter by `catalog.load` for a card and `questions.build` for its questions; `data` says whether the
rows are on this machine.
"""
