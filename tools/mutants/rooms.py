"""Lists the rooms: groups of modules whose mutants are tried, and the test files that must find the mutants."""

from __future__ import annotations

from typing import NamedTuple

from tools import tests_of


class Room(NamedTuple):
    """A group of modules and its tests. modules: dotted names below `harness`; a module that has moved within its
    package is found by its last name. tests: files below `tests`, or `FILE::TEST`.
    """

    modules: str
    tests: str


_SIMULATED = "simulation/test_whole_runs.py::test_every_promise_is_kept_whatever_goes_wrong"

ROOMS = {
    "journal": Room(
        "runs.journal runs.line_file",
        "runs/test_runs_journal.py runs/test_runs_line_file.py"
        " runs/test_runs_copied.py runs/test_runs_state.py runs/test_runs_strangers.py",
    ),
    "survey": Room(
        "runs.survey",
        "runs/test_runs_journal.py runs/test_runs_keys.py runs/test_runs_state.py"
        " runs/test_runs_strangers.py"
        " runs/test_runs_merging.py::test_cut_at_any_byte_of_the_joined_samples_the_same_call_gives_the_same",
    ),
    "lock": Room("runs.lock", "runs/test_runs_lock.py"),
    "merge": Room(
        "runs.merging runs.parts",
        "runs/test_runs_parts.py runs/test_runs_merging.py scoring/test_scoring_merged.py"
        " runs/test_runs_opening.py::test_samples_without_a_manifest_are_refused_by_every_way_in",
    ),
    "inflight": Room("runs.inflight", "runs/test_runs_inflight.py"),
    "record": Room("runs.record", "runs/test_runs_record.py runs/test_runs_keys.py"),
    "reply": Room(
        "client.protocol.sse client.protocol.completion client.protocol.events"
        " client.protocol.usage client.protocol.written client.protocol.reply",
        "client/test_events.py client/test_believed.py client/test_written.py client/test_reply_counts.py",
    ),
    "transport": Room(
        "client.transport client.loop",
        "client/test_transports.py client/test_long_streams.py client/test_leftovers.py client/test_lag.py",
    ),
    "dispatcher": Room(
        "generation.dispatch.dispatcher generation.dispatch.schedule generation.dispatch.lanes"
        " generation.dispatch.arrivals generation.dispatch.causes generation.dispatch.budget"
        " generation.dispatch.canary",
        f"{_SIMULATED} generation/test_dispatch_parts.py generation/test_schedule.py"
        " generation/test_budget.py"
        " generation/test_pace.py generation/test_retry.py"
        " generation/test_failures.py::test_replies_that_end_in_a_loop_are_counted",
    ),
    "retries": Room(
        "generation.dispatch.retry",
        f"{_SIMULATED} generation/test_retry.py",
    ),
    "pace": Room(
        "generation.dispatch.too_many_requests",
        "generation/test_pace.py",
    ),
    "body": Room(
        "client.spelling client.asker presets.sampling",
        "client/test_payload.py presets/test_sampling_fields.py client/test_providers.py generation/test_identity.py",
    ),
    "secrets": Room(
        "core.secret client.address.endpoint",
        "core/test_core_secret.py core/test_core_hidden.py client/test_failures.py client/test_hidden_keys.py"
        " client/test_dns.py client/test_discovery.py client/test_proxies.py"
        " client/test_transports.py::test_a_unix_socket_is_an_endpoint_like_another"
        " client/test_transports.py::test_a_named_authority_is_trusted"
        " client/test_transports.py::test_a_ca_file_that_is_none_is_a_usage_error"
        " generation/test_endpoints.py system/test_keys_in_good_replies.py system/test_secrets_in_objects.py",
    ),
    "journal grades": Room(
        "scoring.observed scoring.journal_grades",
        "scoring/test_scoring_observed.py"
        " scoring/test_scoring_anomalies.py scoring/test_scoring_tokens.py scoring/test_scoring_regrades.py"
        " scoring/test_scoring_card_rules.py",
    ),
    "stats": Room(
        "scoring.stats scoring.stats_draws scoring.stats_differences scoring.uncertainty scoring.repeats",
        "scoring/test_scoring_stats.py scoring/test_scoring_uncertainty.py scoring/test_scoring_repeats.py"
        " scoring/test_scoring_simulation.py",
    ),
    "comparison": Room(
        "scoring.comparison scoring.comparison_published scoring.moves",
        "scoring/test_scoring_comparison.py scoring/test_scoring_moves.py",
    ),
    "race": Room("scoring.race", "scoring/test_scoring_race.py"),
    "extraction": Room(
        "grading.find.beside grading.find.choice grading.find.extract grading.find.labels grading.find.reasoning"
        " grading.find.sentence grading.find.several grading.find.values answers.boxed",
        "pins/test_verdicts.py grading/test_grading_extraction.py grading/test_grading_one_verdict.py",
    ),
    "answers": Room(
        "grading.compare.equivalence grading.compare.structures grading.compare.point grading.compare.realsets"
        " grading.compare.scalars grading.compare.exact grading.compare.modular"
        " grading.compare.equations grading.compare.numeric grading.compare.rounding grading.compare.ratios"
        " grading.compare.identities",
        "pins/test_verdicts.py grading/test_grading_arithmetic.py grading/test_grading_conventions.py"
        " grading/test_grading_near_misses.py grading/test_grading_small_differences.py"
        " grading/test_grading_properties.py",
    ),
    # What runs inside the sandbox is started with `-I` from the checkout's own files, and has no mutant.
    "sandbox": Room(
        "extensions.answers.program.bubblewrap extensions.answers.program.sandboxes extensions.answers.program.cells",
        "programs/test_program_cells.py programs/test_program_bubblewrap.py programs/test_program_sandboxes.py",
    ),
    "viewer": Room(
        "viewer.request viewer.sample_filter", "viewer/test_viewer_request.py viewer/test_viewer_commands.py"
    ),
    "viewer-app": Room("viewer.app", "viewer/test_viewer_app.py viewer/test_viewer_run_page.py"),
}


class MissingPart(Exception):
    """A module or a test file of the table does not exist."""


def modules_of(name: str) -> list[str]:
    """Dotted names of the room's modules; where one has moved, the only module of its last name."""
    return [_module(name, short) for short in ROOMS[name].modules.split()]


def _module(room: str, short: str) -> str:
    modules = tests_of.modules()
    if f"harness.{short}" in modules:
        return f"harness.{short}"
    package, last = f"harness.{short.partition('.')[0]}.", short.rpartition(".")[2]
    same = [module for module in modules if module.startswith(package) and module.rpartition(".")[2] == last]
    if len(same) == 1:
        return same[0]
    raise MissingPart(
        f"room {room}: no module harness.{short}, and {len(same)} modules of {package[:-1]} are called {last}. "
        "Mend ROOMS in tools/mutants/rooms.py"
    )


def tests_of_room(name: str) -> list[str]:
    """The room's tests as pytest takes them: paths of files, relative to the checkout, or `FILE::TEST`."""
    for part in ROOMS[name].tests.split():
        if not (tests_of.CHECKOUT / "tests" / part.partition("::")[0]).is_file():
            raise MissingPart(f"room {name}: no test file tests/{part}. Mend ROOMS in tools/mutants/rooms.py")
    return [f"tests/{part}" for part in ROOMS[name].tests.split()]
