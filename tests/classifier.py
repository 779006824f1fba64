"""The commands of training, in this process."""

from bert_tf.cli import command_line
from bert_tf.extensions.pretrain import command as pretrain
from bert_tf.extensions.pretrain import data_command as data
from bert_tf.operations import fine_tune
from bert_tf.training import run_spec


def main(argv):
    return command_line.main(argv, fine_tune.COMMAND)


def run(*arguments):
    return main(["run_classifier.py", *map(str, arguments)])


def pretraining(argv):
    return command_line.main(argv, pretrain.COMMAND)


def pretraining_data(argv):
    return command_line.main(argv, data.COMMAND)


def parse(argv, command=fine_tune.COMMAND):
    """Returns the configuration of a command line."""
    return command_line.parse(argv, command)[1].settings


def mrpc(*arguments):
    return parse(["run_classifier.py", "--task_name=MRPC", *arguments])


def with_recipe(settings, family, **origins):
    """Settings with those of the recipe, and the recipe."""
    chosen = run_spec.recipe_of(settings, family, parts=settings.parts(), examples=(), **origins).values
    return settings.replaced(chosen), chosen
