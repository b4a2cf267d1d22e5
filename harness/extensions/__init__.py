"""Shipped extensions that the core does not depend on: export formats, trackers, clusters, and answer kinds.

No other package imports them. `harness.core.plugins` finds an extension by its path `<kind>s/<name>.py`, and loads the
object in it that is named after the kind, such as `EXPORTER`.
"""
