"""Two fault tools that others wrote, before a real server: `pytest tests/fault_tools`, left out of plain `pytest`.

The tools are installed into the cache folder on the first run; where that fails, the tests are skipped with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.fault_tools import installed
from tests.fault_tools.runs import Texts, ask, texts

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 1200


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only who names this folder, or something in it, runs it."""
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(HERE in (path.resolve(), *path.resolve().parents) for path in named) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The suite's own limit in place of the short one of the fast tests: the first test may install a tool."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_SECONDS))


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
    done = ask(folder, embedded_server.base_urls[0], "fast")
    assert done.code == 0, done.err
    return texts(folder)


def _or_skip(find: installed.Find) -> list[str]:
    try:
        return find()
    except installed.NotInstalled as error:
        pytest.skip(str(error))
