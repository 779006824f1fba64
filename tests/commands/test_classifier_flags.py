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


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("data_dir", None),
        ("bert_config_file", None),
        ("vocab_file", None),
        ("init_checkpoint", None),
        ("do_lower_case", True),
        ("max_seq_length", 128),
        ("do_predict", False),
        ("train_batch_size", 32),
        ("learning_rate", 5e-5),
        ("num_train_epochs", 3.0),
        ("warmup_proportion", 0.1),
        ("save_checkpoints_steps", 1000),
    ],
)
def test_published_defaults(name, default):
    found = values(parse())[name]
    assert found == default
    assert type(found) is type(default)


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


@pytest.mark.parametrize("name", ["eval_batch_size", "predict_batch_size"])
def test_batches_of_evaluation_are_as_suits_their_lengths(name):
    assert values(parse())[name] is None
    assert values(parse(f"--{name}=8"))[name] == 8


@pytest.mark.parametrize("name", EXACT)
def test_each_lever_can_be_turned_off(name):
    assert levers(parse(f"--no{name}")) == {*EXACT} - {name}


def test_the_published_layout_turns_every_exact_lever_off():
    assert levers(parse("--published_layout")) == set()
    assert levers(parse("--nopublished_layout")) == set(EXACT)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_lever_on_the_command_line_wins_over_the_published_layout(name, before):
    both = [f"--{name}", "--published_layout"]
    assert levers(parse(*(both if before else reversed(both)))) == {name}


def test_a_lever_that_is_turned_off_twice_is_off():
    assert levers(parse("--published_layout", "--nofused_adam")) == set()


def test_the_form_of_the_log_changes_nothing_that_is_computed():
    assert levers(parse("--log_form=published")) == set(EXACT)


def test_the_published_layout_leaves_what_is_not_exact():
    speed = parse("--published_layout", "--group_by_length", "--xla", "--precision=tf32").speed
    assert (speed.group_by_length, speed.xla, speed.precision) == (True, True, "tf32")


@pytest.mark.parametrize("others", [(), ("--pack_tokens",), ("--published_layout", "--pack_tokens")])
def test_xla_computes_padding(others):
    assert not parse("--xla", *others).speed.pack_tokens


def test_xla_leaves_the_other_levers():
    assert levers(parse("--xla")) == {*EXACT} - {"pack_tokens", "defer_embeddings"}


@pytest.mark.parametrize("name", ["default", "float32", "tf32", "bfloat16", "float16"])
def test_precisions_are_those_of_the_machine_room(name):
    assert parse(f"--precision={name}").speed.precision == name
    assert set(settings.PRECISIONS) == set(PRECISIONS)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
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
    ("value", "hint"),
    [
        ("flaot16", "; did you mean float16?"),
        ("bf16", "; did you mean bfloat16?"),
        ("FLOAT16", "; did you mean float16?"),
        ("x", ""),
    ],
)
def test_an_unknown_precision_names_the_nearest(value, hint):
    with pytest.raises(FlagError) as caught:
        parse(f"--precision={value}")
    known = "(known: bfloat16, default, float16, float32, tf32)"
    assert str(caught.value) == f"--precision: unknown value '{value}'{hint} {known}"


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
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


def test_a_flag_given_twice_takes_the_last_value():
    assert parse("--seed=1", "--seed=2").train.seed == 2


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


def test_two_ways_to_say_how_long_are_refused():
    with pytest.raises(FlagError, match="--num_train_steps and --num_train_epochs both say how long to train"):
        parse("--num_train_steps=10", "--num_train_epochs=2")


def test_refusal_points_to_help():
    with pytest.raises(FlagError, match=r"\(--help lists all flags\)$"):
        parse("--colour=blue")


@pytest.mark.parametrize("argument", ["MRPC", "--"])
def test_refuses_an_argument_without_a_name(argument):
    with pytest.raises(FlagError, match="^unexpected argument '(MRPC|glue)'; flags are written --name=value$"):
        parse(argument, "glue")


def test_task_is_required_and_every_task_is_listed():
    with pytest.raises(FlagError, match="^--task_name is required") as caught:
        classifier_flags.parse(["run_classifier.py"])
    assert all(name in str(caught.value) for name in TASKS)


@pytest.mark.parametrize("argument", ["--help", "-h", "-help"])
def test_help_comes_in_the_place_of_settings(argument):
    with pytest.raises(HelpAsked):
        classifier_flags.parse(["run_classifier.py", argument])


@pytest.mark.parametrize("row", [row for rows in classifier_flags.GROUPS.values() for row in rows], ids=lambda row: row.name)
def test_help_explains_every_flag(row):
    name = f"--[no]{row.name}" if row.kind is bool else f"--{row.name}"
    entries = [" ".join(lines.split()) for lines in re.split(r"\n(?!   )", classifier_flags.help_text())]
    [entry] = [entry for entry in entries if entry.split()[:1] == [name]]
    assert row.help in entry
    assert (row.default is None) == ("(default " not in entry)


def test_help_lines_fit_a_terminal_of_132_columns():
    assert max(map(len, classifier_flags.help_text().splitlines())) <= 132


def test_help_lists_every_task():
    [line] = [line for line in classifier_flags.help_text().splitlines() if "--task_name " in line]
    assert all(name in line for name in TASKS)


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


@pytest.mark.parametrize("arguments", [("--do_train=false", "--do_eval=false", "--do_predict=false"), ("--nodo_eval",)])
def test_a_job_with_nothing_to_do_is_refused(arguments):
    with pytest.raises(FlagError, match="^nothing to do: at least one of --do_train, --do_eval and --do_predict"):
        parse(*arguments)


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


@pytest.mark.parametrize(
    ("argument", "lower_case"),
    [("--do_lower=False", False), ("--do_lower=true", True), ("--nodo_lower", False), ("-do_lower", True)],
)
def test_the_abbreviation_of_the_published_readme_is_read(argument, lower_case):
    assert parse(argument).data.do_lower_case is lower_case


@pytest.mark.parametrize("argument", ["--do_low=false", "--do_lower_cas=false", "--init_check=x", "--do_lowering=false"])
def test_other_beginnings_of_names_are_mistakes(argument):
    with pytest.raises(FlagError, match=f"Unknown command line flag '{argument[2:].partition('=')[0]}'"):
        parse(argument)


@pytest.mark.parametrize(
    "argument",
    ["--do_lower_case=False", "--nodo_lower_case", "-do_lower_case=0", "--do_lower_case=f"],
)
def test_switches_are_spelled_as_absl_spells_them(argument):
    assert not parse(argument).data.do_lower_case


@pytest.mark.parametrize("arguments", [("--train_batch_size=12",), ("--train_batch_size", "12"), ("-train_batch_size", "12")])
def test_values_follow_with_or_without_an_equals_sign(arguments):
    assert parse(*arguments).train.train_batch_size == 12


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--nolean_gradients", "custom_gradients", False),
        ("--lean_gradients=true", "custom_gradients", True),
        ("-skip_unread=false", "last_layer_cls_only", False),
    ],
)
def test_names_of_the_version_before_are_read(argument, name, value):
    assert getattr(classifier_flags.parse(["x", "--task_name=MRPC", argument]).speed, name) is value
