"""Names, types, defaults and refusals of the classifier's flags."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.cli.flags import HelpAsked
from bert_tf.errors import FlagError
from bert_tf.jobs import settings
from bert_tf.runtime.precision import PRECISIONS
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import settings_of
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.glue import TASKS
from tests import classifier, classifier_flags

ROOT = Path(__file__).resolve().parents[2]


def parse(*arguments: str):
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC", *arguments])


def values(found) -> dict[str, object]:
    """All settings by flag name, whichever part they are in."""
    groups = [
        *dataclasses.asdict(found.of_task).values(),
        *(group for name, group in dataclasses.asdict(found).items() if name not in ("of_task", "given", "program")),
    ]
    return {name: value for group in groups for name, value in group.items()}


PUBLISHED = {
    **dict.fromkeys(("data_dir", "bert_config_file", "vocab_file", "init_checkpoint")),
    "do_lower_case": True,
    "max_seq_length": 128,
    "do_predict": False,
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "num_train_epochs": 3.0,
    "warmup_proportion": 0.1,
    "save_checkpoints_steps": 1000,
}


def test_published_defaults():
    found = values(parse())
    assert {name: found[name] for name in PUBLISHED} == PUBLISHED
    assert all(type(found[name]) is type(default) for name, default in PUBLISHED.items())


EXACT = (
    *("pack_tokens", "last_layer_cls_only", "custom_gradients", "native_kernels", "fused_adam", "defer_embeddings"),
    "pad_to_longest",
)


def levers(found) -> set[str]:
    """The exact levers that are on."""
    return {name for name in EXACT if getattr(found.speed, name)}


def test_all_that_is_exact_is_on_and_what_is_not_is_off():
    speed = parse().speed
    assert levers(parse()) == set(EXACT) == set(settings.EXACT)
    assert (speed.group_by_length, speed.xla, speed.precision) == (False, False, "default")


NOT_OF_XLA = {"pack_tokens", "defer_embeddings"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *((f"--no{name}", {*EXACT} - {name}) for name in EXACT),
        *((f"--published_layout --{name}", {name}) for name in EXACT),
        *((f"--{name} --published_layout", {name}) for name in EXACT),
        ("--published_layout", set()),
        ("--nopublished_layout", {*EXACT}),
        ("--published_layout --nofused_adam", set()),
        ("--log_form=published", {*EXACT}),
        *((f"--xla{others}", {*EXACT} - NOT_OF_XLA) for others in ("", " --pack_tokens")),
        ("--xla --published_layout --pack_tokens", set()),
    ],
)
def test_levers_are_turned_by_their_own_flags_by_the_layout_and_by_xla(arguments, expected):
    assert levers(parse(*arguments.split())) == expected


def test_the_published_layout_leaves_what_is_not_exact():
    speed = parse("--published_layout", "--group_by_length", "--xla", "--precision=tf32").speed
    assert (speed.group_by_length, speed.xla, speed.precision) == (True, True, "tf32")
    assert set(settings.PRECISIONS) == set(PRECISIONS) == {"default", "float32", "tf32", "bfloat16", "float16"}


PRECISIONS_KNOWN = "(known: bfloat16, default, float16, float32, tf32)"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--precision=bf16", f"--precision: unknown value 'bf16'; did you mean bfloat16? {PRECISIONS_KNOWN}"),
        ("--precision=FLOAT16", f"--precision: unknown value 'FLOAT16'; did you mean float16? {PRECISIONS_KNOWN}"),
        ("--precision=x", f"--precision: unknown value 'x' {PRECISIONS_KNOWN}"),
        (
            "--strategy=mirored",
            "--strategy: unknown value 'mirored'; did you mean mirrored?"
            " (known: central_storage, mirrored, multi_worker, one_device)",
        ),
        (
            "--cross_device_ops=ncl",
            "--cross_device_ops: unknown value 'ncl'; did you mean nccl? (known: hierarchical, nccl, reduce_to_one)",
        ),
        ("--all_reduce_alg=x", "--all_reduce_alg: unknown value 'x' (known: auto, nccl, ring)"),
    ],
)
def test_an_unknown_choice_names_the_nearest(argument, message):
    with pytest.raises(FlagError) as caught:
        parse(argument)
    assert str(caught.value) == message


def test_device_flags_become_what_the_machine_room_reads():
    given = parse("--visible_gpus=0,2", "--gpu_memory_growth", "--nosoft_placement", "--virtual_devices=2").devices
    assert given == DeviceSettings(visible_gpus="0,2", gpu_memory_growth=True, soft_placement=False, virtual_devices=2)
    assert parse().devices == DeviceSettings()
    assert [row.name for row in settings_of(DeviceSettings)] == [field.name for field in dataclasses.fields(DeviceSettings)]


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--eval_batch_size=8", "eval_batch_size", 8),
        ("--predict_batch_size=8", "predict_batch_size", 8),
        ("-train_batch_size 12", "train_batch_size", 12),
        *((argument, "do_lower_case", False) for argument in ("-do_lower_case=0", "--do_lower_case=f")),
        # The abbreviation of the published README, and names of the version before.
        *((argument, "do_lower_case", False) for argument in ("--do_lower=False", "--nodo_lower")),
        *((argument, "do_lower_case", True) for argument in ("--do_lower=true", "-do_lower")),
        ("--nolean_gradients", "custom_gradients", False),
        ("--lean_gradients=true", "custom_gradients", True),
        ("-skip_unread=false", "last_layer_cls_only", False),
        ("--seed=1 --seed=2", "seed", 2),
        ("--max_seq_length=64", "max_seq_length", 64),
        ("--max_seq_length 64", "max_seq_length", 64),
        ("--learning_rate=2e-5", "learning_rate", 2e-5),
        ("--num_train_epochs=2", "num_train_epochs", 2.0),
        ("--do_lower_case=false", "do_lower_case", False),
        ("--do_lower_case=False", "do_lower_case", False),
        ("--nodo_lower_case", "do_lower_case", False),
        ("--do_predict", "do_predict", True),
        ("--verbosity=-1", "verbosity", -1),
    ],
)
def test_reads_every_spelling(argument, name, value):
    found = values(parse(*argument.split()))[name]
    assert found == value
    assert type(found) is type(value)


def test_parses_the_published_gtx_1060_run():
    line = (
        "--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC --vocab_file=base/vocab.txt"
        " --bert_config_file=base/bert_config.json --init_checkpoint=base/bert_model.ckpt --max_seq_length=64"
        " --train_batch_size=12 --learning_rate=2e-5 --num_train_epochs=3.0 --output_dir=./out/"
    )
    found = classifier_flags.parse(["run_classifier.py", *line.split()])
    assert found.data == settings.DataSettings("MRPC", "glue/MRPC", 64)
    assert found.model == settings.ModelSettings("base/bert_model.ckpt", "base/bert_config.json", "base/vocab.txt")
    assert (found.train.train_batch_size, found.train.learning_rate, found.train.num_train_epochs) == (12, 2e-5, 3.0)
    assert found.actions == settings.ActionSettings(do_train=True, do_eval=True)
    assert found.output.output_dir == "./out/"


@pytest.mark.parametrize("wanted", ["do_train", "do_eval", "do_predict"])
def test_does_only_what_is_asked_for(wanted):
    assert parse(f"--{wanted}").actions == settings.ActionSettings(**{wanted: True})


@pytest.mark.parametrize("arguments", [(), ("--use_tpu=false",)])
def test_trains_and_evaluates_where_nothing_is_asked_for(arguments):
    assert parse(*arguments).actions == settings.ActionSettings(do_train=True, do_eval=True)


def test_given_names_the_flags_of_the_command_line():
    assert parse("--learning_rate=5e-5", "--do_eval").given == {"task_name", "learning_rate", "do_eval"}


@pytest.mark.parametrize(
    ("name", "folder"), [("MRPC", "out/mrpc"), ("sst2", "out/sst-2"), ("XNLI-SW", "out/xnli-sw"), ("Custom", "out/custom")]
)
def test_output_folder_is_named_after_the_task(name, folder):
    assert parse(f"--task_name={name}").output.output_dir == folder


def test_flags_of_ones_own_data_become_its_settings():
    given = parse(
        "--task_name=custom", "--train_file=a.csv", "--text_a=3", "--nohas_header", "--problem=regression"
    ).of_task.custom
    assert given == CustomSettings(train_file="a.csv", text_a="3", has_header=False, problem="regression")
    assert parse().of_task.custom == CustomSettings()
    assert [row.name for row in settings_of(CustomSettings)] == [field.name for field in dataclasses.fields(CustomSettings)]


@pytest.mark.parametrize("argument", ["--train_file=a.csv", "--problem=classification", "--has_header"])
def test_flags_of_ones_own_data_go_with_its_task_only(argument):
    name = argument.partition("=")[0]
    with pytest.raises(FlagError, match=rf"^{name} belongs to --task_name=([\w ]+ or )?custom; MRPC does not take it$"):
        parse(argument)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--learning_rte=1", "Unknown command line flag 'learning_rte'; did you mean --learning_rate?"),
        ("--do-train", "did you mean --do_train?"),
        ("--epochs=3", "Unknown command line flag 'epochs'; did you mean --num_train_epochs? (--help lists all flags)"),
        ("--lr=2e-5", "did you mean --learning_rate?"),
        ("--batch_size=8", "did you mean --train_batch_size?"),
        ("--seq-len=64", "did you mean --max_seq_length?"),
        ("--per_device_train_batch_size=8", "did you mean --train_batch_size?"),
        ("--model_name_or_path=x", "did you mean --init_checkpoint?"),
        ("--train=x", "did you mean --train_file?"),
        ("--learning_rate=fast", "flag --learning_rate=fast: could not convert string to float"),
        ("--train_batch_size=1.5", "flag --train_batch_size=1.5: invalid literal"),
        ("--train_batch_size=0", "flag --train_batch_size=0: 0 is not a positive integer"),
        ("--eval_batch_size=-8", "flag --eval_batch_size=-8: -8 is not a positive integer"),
        ("--predict_batch_size=0", "is not a positive integer"),
        ("--save_checkpoints_steps=0", "is not a positive integer"),
        ("--log_every_n_steps=0", "is not a positive integer"),
        ("--log_form=publish", "--log_form: unknown value 'publish'; did you mean published?"),
        ("--learning_rate=-1e-5", "flag --learning_rate=-1e-5: -1e-05 is not a non-negative number"),
        ("--num_train_epochs=-3", "is not a non-negative number"),
        ("--warmup_proportion=-0.1", "is not a non-negative number"),
        ("--warmup_proportion=1.5", "--warmup_proportion=1.5: is a share of the steps, at most 1"),
        ("--polynomial_power=3", "--polynomial_power belongs to --learning_rate_schedule=polynomial"),
        ("--seed=-1", "is not a non-negative integer"),
        ("--learning_rate=nan", "flag --learning_rate=nan: not a number up to 2147483647"),
        ("--num_train_epochs=inf", "flag --num_train_epochs=inf: not a number up to"),
        ("--num_train_epochs=1e300", "flag --num_train_epochs=1e+300: not a number up to"),
        ("--warmup_proportion=nan", "flag --warmup_proportion=nan: not a number up to"),
        ("--seed=99999999999999999999", "flag --seed=99999999999999999999: not a number up to"),
        ("--virtual_devices=10000000", "flag --virtual_devices=10000000: not a number up to 128"),
        ("--intra_op_threads=100000000", "flag --intra_op_threads=100000000: not a number up to 1024"),
        ("--inter_op_threads=100000000", "flag --inter_op_threads=100000000: not a number up to 1024"),
        ("--train_batch_size=1000000000", "flag --train_batch_size=1000000000: not a number up to 131072"),
        ("--eval_batch_size=1000000000", "flag --eval_batch_size=1000000000: not a number up to 131072"),
        ("--freeze=0-99999999999", "--freeze: 0-99999999999: layers are numbers from 0 to 999"),
        (f"--freeze=0-{'9' * 5000}", "--freeze: unknown part"),
        ("--freeze=,", "--freeze=,: names no part"),
        ("--profile_steps=1-9999999999", "--profile_steps=1-9999999999: steps count up to 2147483647"),
        (f"--profile_steps={'9' * 5000}", "is a step or a range of steps"),
        ("--output_dir=out[1]", "--output_dir=out[1]: TensorFlow takes * ? [ in a name for a pattern; name another"),
        ("--do_train=perhaps", "flag --do_train=perhaps"),
        ("--nodo_train=1", "--nodo_train=1 does not take an argument"),
        ("--flagfile=/no/such/file", "--flagfile=/no/such/file: no such file"),
        ("--vocab_file", "Missing value for flag --vocab_file"),
    ],
)
def test_refuses(argument, message):
    with pytest.raises(FlagError) as caught:
        parse(argument)
    assert message in str(caught.value)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--num_train_steps=10 --num_train_epochs=2", "--num_train_steps and --num_train_epochs both say how long to train"),
        ("--colour=blue", r"\(--help lists all flags\)$"),
        ("MRPC glue", "^unexpected argument 'MRPC'; flags are written --name=value$"),
        ("-- glue", "^unexpected argument 'glue'; flags are written --name=value$"),
        ("--nodo_eval", "^nothing to do: at least one of --do_train, --do_eval and --do_predict"),
    ],
)
def test_refuses_lines(arguments, message):
    with pytest.raises(FlagError, match=message):
        parse(*arguments.split())


def test_task_is_required_and_every_task_is_listed():
    with pytest.raises(FlagError, match="^--task_name is required") as caught:
        classifier_flags.parse(["run_classifier.py"])
    assert all(name in str(caught.value) for name in TASKS)


@pytest.mark.parametrize("argument", ["--help", "-h", "-help"])
def test_help_comes_in_the_place_of_settings(argument):
    with pytest.raises(HelpAsked):
        classifier_flags.parse(["run_classifier.py", argument])


def test_help_explains_every_flag_and_every_task_and_fits_a_terminal_of_132_columns():
    text = classifier_flags.help_text()
    entries = [" ".join(lines.split()) for lines in re.split(r"\n(?!   )", text)]
    for row in (row for rows in classifier_flags.GROUPS.values() for row in rows):
        name = f"--[no]{row.name}" if row.kind is bool else f"--{row.name}"
        [entry] = [entry for entry in entries if entry.split()[:1] == [name]]
        assert row.help in entry
        assert (row.default is None) == ("(default " not in entry)
    [line] = [line for line in text.splitlines() if "--task_name " in line]
    assert all(name in line for name in TASKS)
    assert max(map(len, text.splitlines())) <= 132


def test_help_is_quick_and_leaves_tensorflow_out():
    code = (
        "import sys, time; sys.argv = ['run_classifier.py', '--help']\n"
        "from bert_tf.__main__ import main\n"
        "status = main(['', 'fine-tune', '--help'])\n"
        "print('tensorflow' in sys.modules, time.process_time(), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported, seconds = done.stderr.split()
    assert imported == "False"
    assert float(seconds) < 1.0


# Flags of google-research/bert run_classifier.py that are not among ours, as command lines for machines without TPU have them.
WITHOUT_TPU = (
    "--use_tpu=false",
    "--nouse_tpu",
    "--tpu_name=mine",
    "--tpu_zone=us-central1-b",
    "--gcp_project=mine",
    "--master=",
    "--num_tpu_cores=8",
    "--iterations_per_loop=1000",
)


@pytest.mark.parametrize("argument", WITHOUT_TPU)
def test_flags_of_tpus_that_ask_for_none_are_read(argument):
    config, idle = classifier_flags.read_command(["run_classifier.py", "--task_name=MRPC", argument])
    assert config == parse()
    assert idle == [f"--{argument.lstrip('-').removeprefix('no').partition('=')[0]}"]


@pytest.mark.parametrize("argument", ["--use_tpu", "--use_tpu=true", "--master=grpc://10.0.0.1:8470"])
def test_flags_that_ask_for_a_tpu_are_refused(argument, capsys):
    assert classifier.main(["run_classifier.py", "--task_name=MRPC", argument]) == 2
    name = argument.partition("=")[0]
    assert f"error: {name}: there is no TPU here, only GPUs and the CPU of this machine; leave" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--do_low=false", "--do_lower_cas=false", "--init_check=x", "--do_lowering=false"])
def test_other_beginnings_of_names_are_mistakes(argument):
    with pytest.raises(FlagError, match=f"Unknown command line flag '{argument[2:].partition('=')[0]}'"):
        parse(argument)
