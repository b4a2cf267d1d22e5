"""A model that is named is asked though the list of models is missing, odd, forbidden or HTML; a wrong key is not.

For: harness.client.facts.discovery.
"""

from __future__ import annotations

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import NoList, Pages, find_model
from harness.core.errors import ServerError
from tests.faults.server import FaultServer, http

FORMS: dict[str, tuple[int, str]] = {
    "a list without its object": (200, '[{"id": "toy"}]'),
    "no list": (200, '{"object": "list", "data": null}'),
    "names": (200, '{"models": [{"name": "toy"}]}'),
    "HTML": (200, "<!doctype html><title>Gateway</title>"),
    "forbidden": (403, "<html>blocked</html>"),
    "missing": (404, "{}"),
    "not allowed": (405, "{}"),
    "a fault": (500, "{}"),
}


@pytest.mark.parametrize(("status", "body"), FORMS.values(), ids=FORMS)
def test_a_named_model_needs_no_list_and_an_unnamed_one_does(status: int, body: str) -> None:
    with FaultServer(lambda _: [http(status, body.encode())]) as server:
        endpoint, pages = Endpoint.parse(server.base_url), Pages()
        assert find_model(endpoint, "toy", pages=pages) is None
        assert pages.no_list
        with pytest.raises(NoList):
            find_model(endpoint, None)


def test_a_refused_key_is_an_error_for_a_named_model_too() -> None:
    with FaultServer(lambda _: [http(401, b"{}")]) as server, pytest.raises(ServerError, match="no key was sent"):
        find_model(Endpoint.parse(server.base_url), "toy")
