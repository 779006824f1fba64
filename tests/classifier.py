"""The commands that train, in this process."""

from bert_tf.cli import command_line
from bert_tf.operations import fine_tune, pretrain


def main(argv):
    return command_line.main(argv, fine_tune.COMMAND)


def pretraining(argv):
    return command_line.main(argv, pretrain.COMMAND)
