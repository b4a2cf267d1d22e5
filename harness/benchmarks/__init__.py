"""Turn a benchmark's card into the questions to send, with their reference answers.

    card ──▶ sources (rows) ──▶ drafts (ids, references) ──▶ questions (prompt rendered) ──▶ a run

Other packages call `catalog.load` for a card and `questions.build` for its questions; `data` reports whether the rows
are on this machine.
"""
