"""From a user's options to a prepared run, in four steps: the questions, server discovery, the settings, advice.

A server started for the run is stopped at the end of the `with` block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.benchmarks.questions import QuestionSet
from harness.client.facts import discovery
from harness.client.facts.server_info import ServerInfo
from harness.generation.settings import RunSettings
from harness.options.run import RunOptions
from harness.preparing.changed_data import resumed
from harness.preparing.question_warnings import warn_of_settings
from harness.preparing.run_questions import questions_of
from harness.preparing.run_settings import settings_of
from harness.preparing.server_start import started_for
from harness.preparing.servers import ReachedServers, discovered
from harness.progress.events import Watcher
from harness.runs import RunFolder

if TYPE_CHECKING:
    from harness.client.address.endpoint import Endpoint
    from harness.core.records import ServerFacts
    from server_launchers.lifecycle.launch import RunningServer


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that is ready to start.

    reached: the endpoints. server_info: what each of them reported. server: the server that was started for the run, if
    any.
    """

    options: RunOptions
    settings: RunSettings
    sets: list[QuestionSet]
    reached: ReachedServers
    server_info: ServerInfo
    server: RunningServer | None = None

    @property
    def folder(self) -> RunFolder:
        """The run folder."""
        return RunFolder(self.settings.out)

    def describe(self, endpoint: Endpoint) -> ServerFacts:
        """Facts of an endpoint that joins the run.

        It blocks until the endpoint has answered. Raises `ServerError` if it does not answer.
        """
        pages, own = discovery.Pages(), not self.reached.provider.hosted
        if own:
            discovery.find_model(endpoint, self.settings.model, pages=pages)
        return discovery.describe([(endpoint, pages)], self.settings.model, own_pages=own)[0]


@contextmanager
def prepare(
    options: RunOptions,
    watcher: Watcher | None = None,
    *,
    must_answer: bool = False,
    server: RunningServer | None = None,
) -> Iterator[Prepared]:
    """The run described by `options`, with its server running for the duration of the block.

    must_answer: an unreachable server is an error even for an earlier run, which may have no missing sample. server: a
    running server to use instead of the server that the options describe.
    Raises `UsageError` and `ServerError`.
    """
    watcher = watcher or Watcher()
    questions = questions_of(options, watcher)
    starts = server is None and options.serve is not None
    with started_for(questions, watcher) if starts else nullcontext(server) as running:
        if running is not None:  # the options give its address instead of how to start it
            options = options.replace(serve=None, base_url=(running.name,), model=running.model)
            questions = replace(questions, options=options)
        reached, info = discovered(questions, watcher, must_answer=must_answer)
        settings = settings_of(questions, reached, info)
        sets = resumed(questions.sets, RunFolder(settings.out), watcher.warn)
        warn_of_settings(settings, sets, options, reached, info, watcher)
        yield Prepared(options=options, settings=settings, sets=sets, reached=reached, server_info=info, server=running)
