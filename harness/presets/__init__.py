"""Sampling and grading options, and presets: named settings of and facts about models, with their sources."""
