"""The command line of fine-tuning, read as the command does."""

from bert_tf.cli import command_line
from bert_tf.jobs.fine_tune_config import SECTIONS as GROUPS  # noqa: F401
from bert_tf.operations import fine_tune, pretrain


def parse(argv):
    return read_command(argv)[0]


def read_command(argv, command=fine_tune.COMMAND):
    """Returns the configuration, and the flags that have no effect."""
    call = command_line.parse(argv, command)[1]
    return call.settings, [f"--{row.name}" for row in fine_tune.TPU if row.name in call.given]


def pretraining(argv):
    return read_command(argv, pretrain.COMMAND)[0]


def help_text(command=fine_tune.COMMAND):
    return command_line.help_text("", command)
