"""Flags and keywords of fine-tuning: published names, spellings, defaults, what they come to, and refusals."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import FlagError
from bert_tf.runtime.precision import PRECISIONS
from bert_tf.tasks.glue import TASKS
from bert_tf.training import settings
from bert_tf.training.run_spec import configured
from tests import classifier
from tests.classifier import mrpc as parse
from tests.tasks.refusals import refusal
from tests.toy_tags import TagTask


def values(config) -> dict[str, object]:
    """All settings by flag name, whichever part they are in."""
    groups = [
        *dataclasses.asdict(config.of_task).values(),
        *(group for name, group in dataclasses.asdict(config).items() if name not in ("of_task", "given", "program")),
    ]
    return {name: value for group in groups if isinstance(group, dict) for name, value in group.items()}


PUBLISHED = dict.fromkeys(("data_dir", "bert_config_file", "vocab_file", "init_checkpoint"))
PUBLISHED |= {"do_lower_case": True, "max_seq_length": 128, "do_predict": False, "train_batch_size": 32}
PUBLISHED |= {"learning_rate": 5e-5, "num_train_epochs": 3.0, "warmup_proportion": 0.1, "save_checkpoints_steps": 1000}


def test_published_defaults_and_what_is_done_if_nothing_is_asked_for():
    parsed = values(parse())
    assert {name: parsed[name] for name in PUBLISHED} == PUBLISHED
    assert all(type(parsed[name]) is type(default) for name, default in PUBLISHED.items())
    for wanted in ("do_train", "do_eval", "do_predict"):
        assert parse(f"--{wanted}").actions == settings.ActionSettings(**{wanted: True})
    assert parse().actions == settings.ActionSettings(do_train=True, do_eval=True)
    assert parse("--learning_rate=5e-5", "--do_eval").given == {"task_name", "learning_rate", "do_eval"}


EXACT = {
    *("pack_tokens", "last_layer_cls_only", "custom_gradients", "native_kernels", "fused_adam", "defer_embeddings"),
    "pad_to_longest",
}
NOT_OF_XLA = {"pack_tokens", "defer_embeddings"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", EXACT),
        *((f"--no{name}", EXACT - {name}) for name in sorted(EXACT)),
        *((f"--published_layout --{name}", {name}) for name in sorted(EXACT)),
        ("--fused_adam --published_layout", {"fused_adam"}),
        ("--published_layout", set()),
        ("--nopublished_layout", EXACT),
        ("--published_layout --nofused_adam", set()),
        ("--log_form=published", EXACT),
        *((f"--xla{others}", EXACT - NOT_OF_XLA) for others in ("", " --pack_tokens")),
        ("--xla --published_layout --pack_tokens", set()),
    ],
)
def test_levers_are_turned_by_their_own_flags_by_the_layout_and_by_xla(arguments, expected):
    speed = parse(*arguments.split()).speed
    assert {name for name in EXACT if getattr(speed, name)} == expected
    assert set(settings.EXACT) == EXACT


def test_the_published_layout_leaves_what_is_not_exact():
    speeds = (parse().speed, parse("--published_layout", "--group_by_length", "--xla", "--precision=tf32").speed)
    layouts = [(speed.group_by_length, speed.xla, speed.precision) for speed in speeds]
    assert layouts == [(False, False, "default"), (True, True, "tf32")]
    assert set(settings.PRECISIONS) == set(PRECISIONS) == {"default", "float32", "tf32", "bfloat16", "float16"}


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("-train_batch_size 12", "train_batch_size", 12),
        *((argument, "do_lower_case", False) for argument in ("-do_lower_case=0", "--do_lower_case=f", "--nodo_lower_case")),
        # The abbreviation of the published README, and names of the version before.
        *((argument, "do_lower_case", False) for argument in ("--do_lower=False", "--nodo_lower")),
        *((argument, "do_lower_case", True) for argument in ("--do_lower=true", "-do_lower")),
        ("--nolean_gradients", "custom_gradients", False),
        ("--lean_gradients=true", "custom_gradients", True),
        ("-skip_unread=false", "last_layer_cls_only", False),
        ("--seed=1 --seed=2", "seed", 2),
        ("--max_seq_length 64", "max_seq_length", 64),
        ("--num_train_epochs=2", "num_train_epochs", 2.0),
        ("--do_predict", "do_predict", True),
        ("--verbosity=-1", "verbosity", -1),
        ("--visible_gpus=0,2", "visible_gpus", "0,2"),
        ("--task_name=custom --text_a=3", "text_a", "3"),
        *((f"--task_name={name}", "output_dir", f"out/{name.lower()}") for name in ("MRPC", "XNLI-SW", "Custom")),
        ("--task_name=sst2", "output_dir", "out/sst-2"),
        *((f"--{name}=2", "output_dir", f"out/mrpc-{name}") for name in ("seeds", "folds")),
    ],
)
def test_reads_every_spelling(argument, name, value):
    parsed = values(parse(*argument.split()))[name]
    assert parsed == value
    assert type(parsed) is type(value)


# Flags of google-research/bert run_classifier.py that are not among ours, as command lines for machines without TPU have them.
WITHOUT_TPU = (
    "--use_tpu=false --nouse_tpu --tpu_name=mine --tpu_zone=us-central1-b --gcp_project=mine --master= --num_tpu_cores=8"
    " --iterations_per_loop=1000"
)


def test_parses_the_published_gtx_1060_run_and_flags_of_tpus_that_ask_for_none():
    assert parse(*WITHOUT_TPU.split()) == parse()
    line = (
        "--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC --vocab_file=base/vocab.txt"
        " --bert_config_file=base/bert_config.json --init_checkpoint=base/bert_model.ckpt --max_seq_length=64"
        " --train_batch_size=12 --learning_rate=2e-5 --num_train_epochs=3.0 --output_dir=./out/"
    )
    parsed = classifier.parse(["run_classifier.py", *line.split()])
    assert parsed.data == settings.DataSettings("MRPC", "glue/MRPC", 64)
    assert parsed.model == settings.ModelSettings("base/bert_model.ckpt", "base/bert_config.json", "base/vocab.txt")
    assert (parsed.train.train_batch_size, parsed.train.learning_rate, parsed.train.num_train_epochs) == (12, 2e-5, 3.0)
    assert parsed.actions == settings.ActionSettings(do_train=True, do_eval=True)
    assert parsed.output.output_dir == "./out/"


def test_flags_of_tpus_are_warned_of_and_ctrl_c_is_one_line(monkeypatch, caplog, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_tf.training.fine_tune.fine_tune", interrupt)
    assert classifier.run("--task_name=MRPC", "--use_tpu=false", "--num_tpu_cores=8") == 130
    assert caplog.messages == ["there is no TPU here, so these have no effect: --use_tpu, --num_tpu_cores"]
    said = "error: stopped at once; the same command continues from the last checkpoint"
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_a_program_makes_the_same_configuration():
    assert configured(task_name="MRPC") == configured(task_name="MRPC", data_dir=None) == parse()
    given = {"do_train": True, "output_dir": Path("out/x"), "train_batch_size": np.int64(8), "learning_rate": np.float32(0.5)}
    line = ("--do_train", "--output_dir=out/x", "--train_batch_size=8", "--learning_rate=0.5", "--published_layout")
    assert configured(task_name="MRPC", **given, published_layout=True) == parse(*line)
    config = configured(TagTask(), do_train=True)
    assert (config.data.task_name, config.output.output_dir) == (TagTask.name, f"out/{TagTask.name}")


FLOATS = "(known: bfloat16, default, float16, float32, tf32)"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--precision=bf16", f"--precision: unknown value 'bf16'; did you mean bfloat16? {FLOATS}"),
        ("--learning_rte=1", "Unknown command line flag 'learning_rte'; did you mean --learning_rate?"),
        ("--do-train", "did you mean --do_train?"),
        ("--epochs=3", "Unknown command line flag 'epochs'; did you mean --num_train_epochs? (--help=all lists all flags)"),
        ("--colour=blue", "Unknown command line flag 'colour' (--help=all lists all flags)"),
        *(
            (f"--{name}=x", f"Unknown command line flag '{name}'")
            for name in ("do_low", "do_lower_cas", "init_check", "do_lowering")
        ),
        ("--learning_rate=fast", "flag --learning_rate=fast: could not convert string to float"),
        ("--train_batch_size=0", "flag --train_batch_size=0: 0 is not a positive integer"),
        ("--learning_rate=-1e-5", "flag --learning_rate=-1e-5: -1e-05 is not a non-negative number"),
        ("--warmup_proportion=1.5", "flag --warmup_proportion=1.5: not a number up to 1.0"),
        ("--polynomial_power=3", "--polynomial_power belongs to --learning_rate_schedule=polynomial"),
        ("--seed=-1", "is not a non-negative integer"),
        ("--freeze=0-99999999999", "--freeze: 0-99999999999: layers are numbers from 0 to 999"),
        (f"--freeze=0-{'9' * 5000}", "--freeze: unknown part"),
        ("--freeze=,", "--freeze=,: names no part"),
        ("--profile_steps=1-9999999999", "--profile_steps=1-9999999999: steps count up to 2147483647"),
        (f"--profile_steps={'9' * 5000}", "expected a step or a range of steps"),
        ("--output_dir=out[1]", "--output_dir=out[1]: TensorFlow treats * ? [ in a name as a pattern; name another"),
        ("--do_train=perhaps", "flag --do_train=perhaps"),
        ("--nodo_train=1", "--nodo_train=1 does not take an argument"),
        ("--flagfile=/no/such/file", "--flagfile=/no/such/file: no such file"),
        ("--vocab_file", "Missing value for flag --vocab_file"),
        *(
            (argument, f"{argument.partition('=')[0]} belongs to --task_name=")
            for argument in ("--train_file=a.csv", "--problem=classification", "--has_header")
        ),
        ("--label_smoothing=1", "--label_smoothing=1: must be below 1"),
        ("--contrastive_weight=1", "--contrastive_weight=1: must be below 1"),
        ("--ema=1", "--ema=1: must be below 1"),
        ("--ema=0", "--ema=0: must be above 0"),
        ("--average_last=3", "--average_last=3: needs --save_checkpoints_steps=N"),
        ("--average_last=1", "--average_last=1: must be 0 or at least 2"),
        ("--average_last=6 --save_checkpoints_steps=9", "--average_last=6: only --keep_checkpoint_max=5 checkpoints are kept"),
        ("--layer_decay=0", "--layer_decay=0: must be above 0"),
        ("--layer_decay=2", "flag --layer_decay=2.0: not a number up to 1.0"),
        ("--gradient_accumulation_steps=33", "--gradient_accumulation_steps=33: the batch has fewer examples"),
        ("--num_train_steps=10 --num_train_epochs=2", "--num_train_steps and --num_train_epochs both set the training length"),
        ("MRPC glue", "unexpected argument 'MRPC'; flags are written --name=value"),
        ("-- glue", "unexpected argument 'glue'; flags are written --name=value"),
        ("--nodo_eval", "nothing to do: at least one of --do_train, --do_eval and --do_predict"),
        ("--task_name=pretraining", "--task_name=Pretraining has a command of its own: python -m bert_tf pretrain"),
        *(
            (argument, f"{argument.partition('=')[0]}: there is no TPU here, only GPUs and the CPU of this machine; leave")
            for argument in ("--use_tpu", "--use_tpu=true", "--master=grpc://10.0.0.1:8470")
        ),
    ],
)
def test_refuses(argument, message, capsys):
    assert classifier.run("--task_name=MRPC", *argument.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_train_epoch": 3}, "unknown setting 'num_train_epoch'; did you mean num_train_epochs?"),
        ({"train_batch_size": 0}, "--train_batch_size=0: expected at least 1"),
        ({"train_batch_size": 2.5}, "--train_batch_size=2.5: expected a whole number"),
        ({"train_batch_size": True}, "--train_batch_size=True: expected a whole number"),
        ({"learning_rate": "high"}, "--learning_rate='high': expected a number"),
        ({"learning_rate": float("nan")}, "flag --learning_rate=nan: not a number up to"),
        ({"learning_rate": 10**400}, f"--learning_rate={10**400}: expected a number"),
        ({"learning_rate": None}, "--learning_rate=None: expected a number"),
        ({"do_train": 1}, "--do_train=1: expected True or False"),
        ({"output_dir": ""}, "--output_dir is empty"),
        ({"precision": "flaot16"}, "--precision: unknown value 'flaot16'; did you mean float16?"),
    ],
    ids=str,
)
def test_refuses_what_a_program_gives(given, message):
    assert refusal(FlagError, configured, task_name="MRPC", **given).startswith(message)


def test_without_a_task_all_are_named():
    with pytest.raises(FlagError, match="^--task_name is required") as caught:
        classifier.parse(["run_classifier.py"])
    assert all(name in str(caught.value) for name in TASKS)
