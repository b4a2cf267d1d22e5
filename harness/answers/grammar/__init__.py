"""The grammar: from the characters of an answer to a tree of numbers, expressions and structures, or `Unreadable`.

Enter by `parse.parse`; code that works on trees imports `tree`, code that compares units imports `units`.

    source · characters   the characters brought to plain LaTeX
    tokens                characters → tokens; literals, vocabulary and units say what a number, a name, a unit is
    cursor                reading tokens one by one, with a bound on depth
    parse → powers → atoms → latex_commands → cursor    the rules, from a whole answer down; each class extends the next
    tree · shown          the nodes, and a tree written on one line
"""
