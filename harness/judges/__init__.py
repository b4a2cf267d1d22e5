"""A judge model that grades the samples of a run, and grading by a person (`audit`).

`judge` sends the requests and reads the rulings, `costs` estimates what they would cost, `audit` draws samples for a
person.
"""
