"""A name that stands for several machines."""

from __future__ import annotations

import pytest

from harness.client.address.endpoint import expand_dns
from harness.core.errors import ServerError, UsageError


def test_a_name_becomes_an_address_for_each_of_its_machines() -> None:
    def resolve(host: str, port: int) -> list[str]:
        assert (host, port) == ("servers.svc", 8000)
        return ["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"]

    assert expand_dns("dns+http://servers.svc:8000/v1", resolve) == [
        "http://10.0.0.1:8000/v1",
        "http://10.0.0.2:8000/v1",
        "http://[fd00::1]:8000/v1",
    ]
    assert expand_dns("http://servers.svc:8000", resolve) == ["http://servers.svc:8000"], "as it is, without the prefix"


def test_the_machines_own_resolver_is_asked() -> None:
    assert set(expand_dns("dns+http://localhost:8000")) & {"http://127.0.0.1:8000", "http://[::1]:8000"}


@pytest.mark.parametrize("url", ["dns+https://a:1", "dns+ftp://a", "dns+http://", "dns+a:1", "dns+http://a:x"])
def test_what_is_no_such_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base_url"):
        expand_dns(url, lambda host, port: ["1.2.3.4"])


def test_a_name_that_nobody_knows_or_that_stands_for_nothing_is_said() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(ServerError, match="the name a is not known"):
        expand_dns("dns+http://a:1", unknown)
    with pytest.raises(ServerError, match="stands for 0 machines"):
        expand_dns("dns+http://a:1", lambda host, port: [])
