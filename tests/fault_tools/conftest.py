"""Two fault tools that others wrote, before a real server: `pytest tests/fault_tools`, left out of plain `pytest`.

The tools are installed into the cache folder on the first run; where that fails, the tests are skipped with the reason.
"""

from __future__ import annotations

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.fault_tools import installed
from tests.fault_tools.runs import Texts, ask, texts


@pytest.fixture(scope="session")
def llmock() -> list[str]:
    """Command line of aimock's server."""
    return _or_skip(installed.llmock)


@pytest.fixture(scope="session")
def mitmdump() -> list[str]:
    """Command line of mitmproxy without a screen."""
    return _or_skip(installed.mitmdump)


@pytest.fixture(scope="session")
def quiet(embedded_server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """What the server answers to the same run when nothing is in between."""
    folder = tmp_path_factory.mktemp("quiet")
    done = ask(folder, embedded_server.base_urls[0], "http")
    assert done.code == 0, done.err
    return texts(folder)


def _or_skip(find: installed.Find) -> list[str]:
    try:
        return find()
    except installed.NotInstalled as error:
        pytest.skip(str(error))
