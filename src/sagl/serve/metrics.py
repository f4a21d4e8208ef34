"""What Prometheus is told."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters of one service, beside those of the process (memory, time, files)."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        path = ("path",)
        self.requests = Counter(
            "sagl_requests",
            "Answered, by status.",
            (*path, "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "sagl_request_seconds",
            "From the first byte of a request to the end of its answer.",
            path,
            buckets=_SECONDS,
            registry=registry,
        )
        self.rows = Counter("sagl_rows", "Samples answered for.", registry=registry)
        self.blocks = Counter(
            "sagl_blocks",
            "Times that the model was asked: rows of several requests at once.",
            registry=registry,
        )
        self.at_work = Gauge(
            "sagl_requests_at_work",
            "Being received, waiting or computed.",
            registry=registry,
        )

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
