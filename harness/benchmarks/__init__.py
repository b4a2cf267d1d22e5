"""From a benchmark's card to rendered questions: cards, catalogue, sources, prompts, other tools' outputs."""
