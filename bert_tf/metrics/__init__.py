"""Metrics of predictions, their confidence intervals, and tables by class."""

from bert_tf.metrics.intervals import confidence_intervals
from bert_tf.metrics.values import METRICS, ClassScores, collapse, compute, confusion, per_class, usual

__all__ = [
    "METRICS",
    "ClassScores",
    "collapse",
    "compute",
    "confidence_intervals",
    "confusion",
    "per_class",
    "usual",
]
