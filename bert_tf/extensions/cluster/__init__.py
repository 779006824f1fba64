"""Cluster: pipelines of Apache Beam, and columns of Spark's data frames (docs/cluster.md)."""

from bert_tf.extension import Extension

EXTENSION = Extension(
    pipelines={
        "predict": f"{__name__}.beam_job:predict",
        "evaluate": f"{__name__}.evaluate:run",
        "encode": f"{__name__}.beam_job:encode",
        "pretraining-data": f"{__name__}.beam_job:run_each",
    }
)
