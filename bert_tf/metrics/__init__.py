"""Metrics of predictions, their confidence intervals, tables by class, the GLUE score."""

from bert_tf.metrics.glue import GLUE_METRICS, glue_score
from bert_tf.metrics.intervals import confidence_intervals
from bert_tf.metrics.values import METRICS, ClassScores, collapse, compute, confusion, per_class, usual

__all__ = [
    "GLUE_METRICS",
    "METRICS",
    "ClassScores",
    "collapse",
    "compute",
    "confidence_intervals",
    "confusion",
    "glue_score",
    "per_class",
    "usual",
]
