"""Metrics of the service in Prometheus format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Metrics:
    """Counters of one service; a process may hold several, as in tests."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self.requests = Counter("bert_tf_requests", "answered requests", ("path", "status"), registry=registry)
        self.seconds = Histogram(
            "bert_tf_request_seconds",
            "from the head of a request to its answer",
            ("path",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.rejected = Counter("bert_tf_rejected", "requests refused, by status", ("status",), registry=registry)
        self.inside = Gauge("bert_tf_requests_inside", "requests that are read, wait or are computed", registry=registry)
        self.queue_requests = Gauge("bert_tf_queue_requests", "requests that wait", registry=registry)
        self.queue_tokens = Gauge("bert_tf_queue_tokens", "tokens that wait", registry=registry)
        self.rows = Counter("bert_tf_rows", "rows computed", registry=registry)
        self.tokens = Counter("bert_tf_tokens", "tokens computed", registry=registry)
        self.batch_rows = Histogram("bert_tf_batch_rows", "rows of a batch", buckets=_SIZES, registry=registry)
        self.batch_tokens = Histogram("bert_tf_batch_tokens", "tokens of a batch", buckets=_TOKENS, registry=registry)
        self.batch_requests = Histogram(
            "bert_tf_batch_parts", "parts of requests in a batch", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram("bert_tf_batch_seconds", "to compute a batch", buckets=_SECONDS, registry=registry)
        self.workers = Gauge("bert_tf_workers", "workers that compute", registry=registry)
        self.replaced = Counter("bert_tf_workers_replaced", "workers that ended, and were replaced", registry=registry)
        self.reloads = Counter("bert_tf_reloads", "loads of another checkpoint", ("outcome",), registry=registry)
        self.model = Gauge("bert_tf_model", "1 for the model that answers", ("checkpoint", "digest"), registry=registry)

    def text(self) -> bytes:
        found: bytes = generate_latest(self.registry)
        return found
