"""How a command begins that computes: log and collector, before TensorFlow is imported."""

from __future__ import annotations

from absl import flags, logging


def begin(verbosity: int) -> None:
    """Sets the log up.

    Args:
      verbosity: -1 warnings only, 0 the log, 1 TensorFlow's own messages too.
    """
    from bert_tf.runtime import collector, noise

    collector.collect_rarely()
    logging.set_verbosity(verbosity)
    logging.use_absl_handler()
    flags.FLAGS.mark_as_parsed()  # else the log begins with a complaint; our flags are not the global ones
    if verbosity < 1:
        noise.quiet_before_import()
        noise.quiet_python()
