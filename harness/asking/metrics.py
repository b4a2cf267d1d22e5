"""Serves a session's figures over HTTP for Prometheus and similar tools: as OpenMetrics, read-only, by default only on
this machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.generation.progress import Progress

if TYPE_CHECKING:
    from prometheus_client.core import Metric

ENDPOINT_STATES = ("open", "paused", "set aside", "left")


@contextlib.contextmanager
def serve_figures(port: int, host: str, model: str, watcher: Watcher) -> Iterator[Callable[[Progress], None]]:
    """Serve the session's figures on a port for the length of the block.

    Yields the function to call with each progress; it passes the progress on to the watcher, too. Raises `UsageError`
    if the port cannot be opened.
    """
    # Imported late: only sessions with metrics need it.
    from prometheus_client import CollectorRegistry, start_http_server

    figures = Figures(model)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(figures)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        # A port above 65535 raises OverflowError.
        message = f"no metrics can be served on {quoted(host)}: {quoted(str(error))}"
        raise UsageError(message, field="metrics_port", value=port) from error
    try:
        shown = f"[{host}]" if ":" in host else host
        watcher.metered(f"http://{shown}:{server.server_port}/metrics")

        def listener(progress: Progress) -> None:
            figures.latest = progress
            watcher.progressed(progress)

        yield listener
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Figures:
    """The latest progress as metrics. The HTTP server calls `collect` in a thread of its own."""

    def __init__(self, model: str) -> None:
        self.latest: Progress | None = None
        self._model = model

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics at this moment; `prometheus_client` calls this method of a collector."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        yield InfoMetricFamily("harness_run", "What is sampled.", value={"model": self._model})
        facts = self.latest
        if facts is None:
            return

        def gauge(name: str, about: str, value: float | None) -> Iterator[Metric]:
            if value is not None:
                yield GaugeMetricFamily(f"harness_{name}", about, value=value)

        samples = GaugeMetricFamily("harness_samples", "Samples by benchmark and state.", labels=["benchmark", "state"])
        for benchmark in facts.benchmarks:
            rest = benchmark.total - benchmark.done - benchmark.in_flight - benchmark.retrying - benchmark.given_up
            for state, n in (
                ("done", benchmark.done),
                ("in_flight", benchmark.in_flight),
                ("retrying", benchmark.retrying),
                ("given_up", benchmark.given_up),
                ("waiting", max(0, rest)),
            ):
                samples.add_metric([benchmark.name, state], n)
        yield samples
        yield CounterMetricFamily("harness_tokens", "Completion tokens received in this session.", value=facts.arrived)
        yield CounterMetricFamily("harness_finished_samples", "Replies finished in this session.", value=facts.finished)
        yield CounterMetricFamily("harness_truncated_samples", "Replies cut at their budget.", value=facts.truncated)
        yield CounterMetricFamily("harness_retries", "Requests made again.", value=facts.retries)
        failures = CounterMetricFamily("harness_failures", "Failed requests by kind.", labels=["kind"])
        for failure in facts.failed:
            failures.add_metric([failure.kind], failure.count)
        yield failures
        yield from gauge("elapsed_seconds", "Since the session began.", facts.elapsed_s)
        yield from gauge("concurrency", "Requests that may be in flight.", facts.concurrency)
        yield from gauge(
            "tokens_per_second", "Tokens received per second, over the last seconds.", facts.tokens_per_s_now
        )
        yield from gauge(
            "oldest_seconds", "Age of the oldest request in flight.", facts.oldest.seconds if facts.oldest else None
        )
        if facts.eta is not None:
            left = GaugeMetricFamily("harness_left_seconds", "Until the session ends.", labels=["bound"])
            left.add_metric(["least"], facts.eta.least_s)
            left.add_metric(["most"], facts.eta.most_s)
            yield left
        flying = GaugeMetricFamily("harness_endpoint_in_flight", "Requests in flight.", labels=["endpoint"])
        states = GaugeMetricFamily("harness_endpoint_state", "1 for its present state.", labels=["endpoint", "state"])
        for endpoint in facts.endpoints:
            flying.add_metric([endpoint.base_url], endpoint.in_flight)
            for state in ENDPOINT_STATES:
                states.add_metric([endpoint.base_url, state.replace(" ", "_")], endpoint.state == state)
        yield flying
        yield states
