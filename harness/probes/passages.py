"""The texts after whose words the next token of two servers is compared."""

from __future__ import annotations

from harness.core.codec import digest
from harness.generation import fingerprint

PASSAGES: tuple[str, ...] = (
    "The old bridge was closed because the river had risen overnight, and nobody in the village could reach "
    "the market before the water fell again in the afternoon",
    "A prime number has exactly two divisors, one and itself, which is why the number one is not counted among "
    "them by anybody who studies arithmetic today",
    "In the winter of that year the printer moved his shop to the other side of the street, where the rent was "
    "lower and the windows let in more light",
    "To make bread you need flour, water, salt and time; the dough rests for an hour under a cloth, and is "
    "folded twice before it goes into the oven",
    "The function reads the file line by line, splits each line at the comma and returns a list of numbers, or "
    "raises an error when a field is empty",
    "When light passes from air into glass it slows down and bends towards the normal, by an angle that "
    "depends on its colour, so that a prism spreads it",
    "The court found that the contract had never been signed by both parties, and that the goods had to be "
    "returned within thirty days of the decision",
    "She walked along the beach every morning, collecting shells that she later arranged by size on the shelf "
    "above the small table in her kitchen",
    "The train to the capital leaves at seven in the morning from platform four, stops at every station, and "
    "arrives a little after noon if the weather is good",
    "Vaccines train the immune system to recognise a virus before it meets one, by showing it a harmless part "
    "of the virus or the instructions to make such a part",
    "The orchestra had rehearsed the second movement for three weeks, but on the evening of the concert the "
    "conductor decided to play it much slower than before",
    "Prices rose by four percent over the year, mostly because of energy and rent, while wages in the public "
    "sector stayed where they had been since the last agreement",
    "If a triangle has sides of three, four and five units, the angle between the two shorter sides is a right "
    "angle, as the theorem of Pythagoras says",
    "The keeper of the lighthouse wrote down the name of every ship that passed, the hour at which it came and "
    "the wind that carried it towards the harbour",
    "Our team lost the first half by two goals, changed the formation during the break, and scored three times "
    "in the last twenty minutes of the match",
    "The moon turns once around its axis in the time in which it travels once around the earth, and therefore "
    "always shows us the same side of its face",
)

PLACES = 6
"""Number of places of each passage at which the next token is compared."""

FIRST_WORD, STEP = 6, 3
"""The first place of a passage is behind this many words; each further place is this many words later."""


def texts() -> list[tuple[int, str]]:
    """(number of the passage, text before the place) of each place at which the next token is compared."""
    lengths = range(FIRST_WORD, FIRST_WORD + STEP * PLACES, STEP)
    split = [(i, passage.split()) for i, passage in enumerate(PASSAGES)]
    return [(i, " ".join(words[:n_words])) for i, words in split for n_words in lengths]


VERSION = digest([texts(), fingerprint.version({})])[:12]
"""Version of the texts; references of another version are not compared."""
