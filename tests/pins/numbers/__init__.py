"""64 generated runs, as stored (`runs.tar.xz`), and every number that the product states of them.

`numbers.jsonl` has a line for each score of a run, comparison, verification and plan. `tests.pins.test_pinned_numbers`
computes them and holds the only place that knows the form of the records; `tests.pins.held` writes them anew. The runs
were sampled once: 16 families of four models that are asked the same questions, which together reach each branch that
50 such families reach. Each family drew its benchmarks, kinds of answer, samples, groups and clusters; each model its
ability, and its share of cut, missing and copied replies.
"""
