"""Metrics of predictions, their confidence intervals, tables by class, the GLUE score."""

from bert_tf.metrics.classes import ClassScores, collapse, confusion, per_class
from bert_tf.metrics.glue import GLUE_METRICS, glue_score
from bert_tf.metrics.intervals import confidence_intervals
from bert_tf.metrics.values import METRICS, compute

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
]
