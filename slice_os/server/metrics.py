"""What a server counts, in Prometheus' text format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """The counters of one server, in a registry of their own.

    Attributes:
        waiting: Searches that wait for the encoder.
        batch: How many queries are encoded together.
        mining: Minings under way.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "slice_os_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "slice_os_request_seconds",
            "Seconds until a request was answered, by route.",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._stages = Histogram(
            "slice_os_stage_seconds",
            "Seconds of the stages of a search: waiting, searching (of a batch), showing.",
            ("stage",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.waiting = Gauge(
            "slice_os_waiting_searches", "Searches that wait.", registry=self._registry
        )
        self.batch = Histogram(
            "slice_os_batch_queries",
            "Queries that were encoded and searched together.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self._registry,
        )
        self.mining = Gauge("slice_os_minings", "Minings under way.", registry=self._registry)

    def stage(self, name: str, seconds: float) -> None:
        """Count what a stage of a search has taken."""
        self._stages.labels(name).observe(seconds)

    def text(self) -> bytes:
        """Return all of it in the text format 0.0.4."""
        return generate_latest(self._registry)
