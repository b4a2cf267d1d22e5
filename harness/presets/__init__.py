"""Options of sampling and of grading, and presets: settings and facts of models, by name, with their sources."""
