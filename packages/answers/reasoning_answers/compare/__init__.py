"""Decides whether two answers are the same: compares them as texts, then as trees, by cheap rules before expensive
ones.

The entry point is `equivalence.equal`.

    equivalence    two texts: integers, choices, words, else two trees
    structures     two trees of any kind, part by part; with equations and assignments (x = 1, y = 2), families (kπ,
                   free constants), ratios, realsets, rewriting (±) for each kind
    scalars        two numbers or expressions with their units, by methods that are tried in this order until one
                   decides:  exact → modular → numeric
    words          two answers in words
    conventions    what a card may switch on or off
"""
