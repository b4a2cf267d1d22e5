"""The APIs: each is one file with one value, which says how its requests are written and its replies read.

    api       what such a value has (`API`), and what every reply is made of (`Event`)
    table     the value for a name of the option `api`

These modules import `core` alone, so that each part of the client can use them.
"""
