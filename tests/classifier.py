"""The commands of training, in this process."""

from bert_tf.cli import command_line
from bert_tf.operations import fine_tune, pretrain
from bert_tf.operations import pretraining_data as data


def main(argv):
    return command_line.main(argv, fine_tune.COMMAND)


def pretraining(argv):
    return command_line.main(argv, pretrain.COMMAND)


def pretraining_data(argv):
    return command_line.main(argv, data.COMMAND)
