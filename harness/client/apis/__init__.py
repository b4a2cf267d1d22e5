"""The APIs: each is one file with one value, which says how its requests are written and its replies are read.

    api       the type of these values (`API`), and what every reply is made of (`Event`)
    table     the value for each name of the option `api`

These modules import only `core`, so that every part of the client can use them.
"""
