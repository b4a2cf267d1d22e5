"""Fixtures of the tests that read the pages."""

from tests.docs.trying import bench as bench
from tests.docs.trying import cards_of_one_question as cards_of_one_question
