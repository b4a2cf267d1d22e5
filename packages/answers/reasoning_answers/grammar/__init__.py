"""The grammar: from the characters of an answer to a tree of numbers, expressions and structures, or `Unreadable`.

The entry point is `parse.parse`; code that works on trees imports `tree`, and code that compares units imports `units`.

    notation              the characters brought to plain LaTeX
    tokens                characters → tokens; numerals, notation and units say what a number, a name, a unit is
    parser · operators    tokens → expressions: each operator by how tightly it binds
    operands              what an expression begins with: numbers, letters, words, commands, brackets
    parse                 what is above expressions: relations, conditions, lists
    tree                  the nodes, and a tree written on one line
"""
