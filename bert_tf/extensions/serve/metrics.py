"""Metrics of the service in Prometheus format."""

from __future__ import annotations

import functools

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
        counter = functools.partial(Counter, registry=registry)
        gauge = functools.partial(Gauge, registry=registry)
        histogram = functools.partial(Histogram, registry=registry)
        self.requests = counter("bert_tf_requests", "answered requests", ("path", "status"))
        seconds = "from the head of a request to its answer"
        self.seconds = histogram("bert_tf_request_seconds", seconds, ("path",), buckets=_SECONDS)
        self.rejected = counter("bert_tf_rejected", "requests refused, by status", ("status",))
        self.inside = gauge("bert_tf_requests_inside", "requests being read, waiting or being computed")
        self.queue_requests = gauge("bert_tf_queue_requests", "waiting requests")
        self.queue_tokens = gauge("bert_tf_queue_tokens", "waiting tokens")
        self.rows = counter("bert_tf_rows", "rows computed")
        self.tokens = counter("bert_tf_tokens", "tokens computed")
        self.batch_rows = histogram("bert_tf_batch_rows", "rows of a batch", buckets=_SIZES)
        self.batch_tokens = histogram("bert_tf_batch_tokens", "tokens of a batch", buckets=_TOKENS)
        self.batch_requests = histogram("bert_tf_batch_parts", "parts of requests in a batch", buckets=_SIZES)
        self.batch_seconds = histogram("bert_tf_batch_seconds", "time to compute a batch", buckets=_SECONDS)
        self.workers = gauge("bert_tf_workers", "workers that compute")
        self.replaced = counter("bert_tf_workers_replaced", "workers that ended, and were replaced")
        self.reloads = counter("bert_tf_reloads", "loads of another checkpoint", ("outcome",))
        self.model = gauge("bert_tf_model", "1 for the model in use", ("checkpoint", "digest"))

    def text(self) -> bytes:
        text: bytes = generate_latest(self.registry)
        return text
