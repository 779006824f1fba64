"""Sets up the log, the garbage collector and the import of TensorFlow for commands that compute."""

from __future__ import annotations

from absl import flags

from bert_tf.io import log_form


def setup_logging(verbosity: int, form: str = log_form.SHORT) -> None:
    """Sets up the log, and the import of TensorFlow without modules that no command uses.

    `verbosity`: -1 warnings only, 0 the log, 1 also TensorFlow's own messages. `form` is one of `log_form.FORMS`; the
    published one shows TensorFlow's messages at every verbosity.
    """
    from bert_tf.runtime import noise, quick_import

    quick_import.collect_rarely()
    quick_import.install()
    log_form.set_up(form, verbosity)
    flags.FLAGS.mark_as_parsed()  # else absl logs a warning: our flags are not the global ones
    if form == log_form.PUBLISHED:
        noise.hear_python()
    elif verbosity < 1:
        noise.quiet_before_import()
        noise.quiet_python()
