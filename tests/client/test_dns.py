"""A name that stands for several machines."""

from __future__ import annotations

import pytest

from harness.client.address.endpoint import expand_dns
from harness.core.errors import ServerError, UsageError


def test_a_name_becomes_an_address_for_each_of_its_machines() -> None:
    def resolve(host: str, port: int) -> list[str]:
        ports.append(port)
        return {"many": [f"10.0.{i // 256}.{i % 256}" for i in range(4096)]}.get(
            host, ["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"]
        )

    ports: list[int] = []
    assert expand_dns("dns+http://a", resolve) == ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://[fd00::1]:80"]
    assert expand_dns("dns+http://a:8000/v1", resolve)[0] == "http://10.0.0.1:8000/v1"
    assert expand_dns("http://a:8000", resolve) == ["http://a:8000"], "as it is, without the prefix"
    assert len(expand_dns("dns+http://many", resolve)) == 4096
    assert ports == [80, 8000, 80]


def test_a_name_that_nobody_knows_or_that_stands_for_none_or_too_many_is_said() -> None:
    def resolve(host: str, port: int) -> list[str]:
        if host == "a":
            raise OSError("Name or service not known")
        return [f"10.0.{i // 256}.{i % 256}" for i in range(port)]

    for url, words in (
        ("dns+http://a:1", "the name a is not known"),
        ("dns+http://b:4097", "b stands for 4097 machines; expected 1 to 4096"),
    ):
        with pytest.raises(ServerError, match=words):
            expand_dns(url, resolve)
    with pytest.raises(ServerError, match="stands for 0 machines"):
        expand_dns("dns+http://b", lambda host, port: [])


def test_the_machines_own_resolver_is_asked() -> None:
    assert set(expand_dns("dns+http://localhost:8000")) & {"http://127.0.0.1:8000", "http://[::1]:8000"}


@pytest.mark.parametrize("url", ["dns+https://a:1", "dns+ftp://a", "dns+http://", "dns+a:1", "dns+http://a:x"])
def test_what_is_no_such_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base_url"):
        expand_dns(url, lambda host, port: ["1.2.3.4"])
