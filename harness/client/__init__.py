"""One request to an OpenAI-compatible endpoint → one reply or one typed failure. Knows nothing of questions or runs."""
