"""A judge model that grades the samples of a run, and a person who does (`audit`).

`judge` sends the requests and reads the rulings, `costs` says what they would cost, `audit` draws samples for a person.
"""
