"""Extensions that ship with the harness and that the core does without: formats, trackers, clusters, kinds of answers.

No other package imports them. `harness.core.plugins` finds an extension by its path `<kind>s/<name>.py`, and takes the
object in it that has the kind's name, such as `EXPORTER`.
"""
