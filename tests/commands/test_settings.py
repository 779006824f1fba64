"""Each setting of each operation: the same as a flag, as a keyword and as a key of a job file; command lines and job files."""

import inspect
import json
import keyword
import operator
import pickle
import re

import pytest

import bert_tf
from bert_tf import settings
from bert_tf.batch.file_pairs import FilePair
from bert_tf.batch.job import Columns, LabelledColumns, ModelOverrides
from bert_tf.cli import command_line
from bert_tf.cli.command_line import by_name, parse_flags
from bert_tf.cli.help import help_text
from bert_tf.errors import FlagError
from bert_tf.extensions.evaluate.command import EvaluateSettings, TaskEntry
from bert_tf.extensions.export.command import ExportSettings
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.extensions.vectors.encode import EncodeSettings
from bert_tf.operations.command import flags_of
from bert_tf.operations.predict import PredictSettings
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import nearest, settings_of, unknown_setting
from bert_tf.settings import read_settings as read_settings
from bert_tf.training import run_spec
from tests import declared, lines
from tests.tasks.refusals import refusal

WITHOUT_FUNCTION = {"export"}  # a method of a model: bert_tf.load(...).export(...)
OPERATIONS = declared.settings()
CALLS = {name: rows for name, rows in OPERATIONS.items() if name not in WITHOUT_FUNCTION}
# `task` may be an object; others are called for each seed.
WITHOUT_ARGUMENT = {"fine-tune": {"task_name"}, "pretrain": {"seeds"}, "distill": {"seeds"}}
WITHOUT_FLAG = {"fine-tune": {"task"}, "distill": {"task"}}
WITHOUT_FLAG |= {"data fetch": {"source_dir"}, "vocabulary extend": {"corpus"}}  # two are --from
OF_TRAINING = {row.name for row in run_spec.SETTINGS}


def value_of(row):
    """A value that is not the default."""
    if row.choices:
        return next(choice for choice in row.choices if choice != row.default)
    return {bool: not row.default, int: 7, float: 0.5, str: "7", tuple: ("7", "8")}[row.kind]


def text_of(value):
    return ",".join(value) if isinstance(value, tuple) else str(value)


def beyond(row):
    """Yields values that a setting does not take, and what a flag says of each."""
    if row.choices:
        yield "none", f"--{row.name}: unknown value 'none'"
    elif row.kind in (int, float):
        yield "many", f"flag --{row.name}=many: "
        yield row.highest * 2, f"flag --{row.name}="
        if row.lowest is not None:
            yield row.kind(row.lowest - 1), f"flag --{row.name}="


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_flag_and_a_keyword_are_the_same_setting_and_refuse_what_is_beyond_its_choices_and_bounds(name):
    for row in (row for row in OPERATIONS[name] if not row.positional):
        value = value_of(row)
        flag = by_name(parse_flags([name, f"--{row.name}={text_of(value)}"], [row]), [row])
        assert settings.named([row], flag) == settings.named([row], {row.name: value}) == {row.name: value}
        with pytest.raises(FlagError, match=f"^--{row.name} is empty: did you mean to set a shell variable"):
            parse_flags([name, f"--{row.name}="], [row])
        with pytest.raises(FlagError):
            settings.named([row], {row.name: object()})
        for value, said in beyond(row):
            with pytest.raises(FlagError, match=f"^{re.escape(said)}"):
                parse_flags([name, f"--{row.name}={value}"], [row])
            with pytest.raises(FlagError, match=f"--{row.name}"):
                settings.named([row], {row.name: value})


@pytest.mark.parametrize("name", OPERATIONS)
def test_help_lists_every_flag(name):
    operation = declared.operations()[name]
    text = help_text([name], operation, everything=True)
    flags = [row for row in flags_of(operation) if row.help]
    assert [row.name for row in flags if not re.search(rf"--(\[no\])?{row.name} ", text)] == []


@pytest.mark.parametrize(
    ("name", "entries", "flags"),
    [
        ("predict", {"files": {"input": "a", "output": "b"}}, ["--input=a", "--output=b"]),
        ("evaluate", {"tasks": "MRPC"}, ["--task_name=MRPC"]),
    ],
)
def test_a_key_of_a_job_file_is_the_same_setting(name, entries, flags, tmp_path):
    of_line = {"input", "output", "job", "task_name", "data_dir", "data", "beam", "precision", "engine", "native_kernels"}
    of_line |= {row.name for row in settings_of(run_spec.DeviceSettings)}
    if name == "evaluate":
        of_line |= {row.name for row in settings_of(LabelledColumns)}  # in a job file they are keys of a task
    rows = [row for row in OPERATIONS[name] if row.name not in of_line]
    keys = {row.name: value_of(row) for row in rows}
    (tmp_path / "job.json").write_text(json.dumps({**keys, **entries}))
    by_file = lines.parse(name, f"--job={tmp_path / 'job.json'}").settings
    by_flags = lines.parse(name, *flags, *(f"--{key}={text_of(value)}" for key, value in keys.items())).settings
    names = dict.fromkeys(("job", "task_name", "input", "output"))
    assert settings.replaced(by_file, names) == settings.replaced(by_flags, names)


def function_of(command):
    """Returns the function whose first line names the command."""
    every = [getattr(bert_tf, name) for name in bert_tf.__all__]
    words = f"`python -m bert_tf {command}`"
    (function,) = (one for one in every if inspect.isfunction(one) and words in one.__doc__.partition("\n")[0])
    return function


@pytest.mark.parametrize("command", CALLS)
def test_keywords_and_their_defaults_are_those_of_the_settings(command):
    parameters = inspect.signature(function_of(command)).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    rows = [row for row in CALLS[command] if not keyword.iskeyword(row.name)]
    words = {row.name for row in rows if row.positional}
    without = WITHOUT_ARGUMENT.get(command, set()) | words
    expected = {row.name: row.default for row in rows if row.name not in without}
    own = WITHOUT_FLAG.get(command, set()) | words
    assert {name: default for name, default in defaults.items() if name not in own} == expected


@pytest.mark.parametrize("command", sorted(CALLS.keys() - {"report", "data fetch"}))
def test_an_unknown_setting_is_refused(command):
    function = function_of(command)
    words = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
    words = [p for p in words if p.kind is not p.VAR_KEYWORD]
    with pytest.raises(FlagError, match="unknown setting 'no_such_setting'"):
        function(*("x" for _ in words), no_such_setting=1)


OF_LIBRARIES = {
    "Keras": "epochs=num_train_epochs lr=learning_rate batch_size=train_batch_size seq_len=max_seq_length",
    "transformers": "warmup_ratio=warmup_proportion save_total_limit=keep_checkpoint_max fp16=precision"
    " lr_scheduler_type=learning_rate_schedule model_name_or_path=init_checkpoint",
    "Lightning": "accumulate_grad_batches=gradient_accumulation_steps learning-rate=learning_rate",
}


@pytest.mark.parametrize("library", OF_LIBRARIES)
def test_settings_are_found_by_the_names_of_other_libraries(library):
    for name, ours in (pair.split("=") for pair in OF_LIBRARIES[library].split()):
        assert unknown_setting("setting", name, OF_TRAINING) == f"unknown setting {name!r}; did you mean {ours}?"


def test_each_name_of_other_libraries_leads_to_a_setting_that_the_operation_takes():
    known = {row.name for row in settings_of(EncodeSettings, EvaluateSettings, ExportSettings, PredictSettings)}
    assert set(settings._NAMED_ELSEWHERE) <= OF_TRAINING | known
    predicting = {row.name for row in settings_of(PredictSettings)}
    assert nearest("epochs", predicting) is None
    assert nearest("batch_size", predicting) == "predict_batch_size"
    assert "(known: " in unknown_setting("setting", "epochs", predicting)
    assert len(OF_TRAINING) == len(run_spec.SETTINGS)  # each is declared once


NAMES = ("encode", "evaluate", "export", "fill-mask", "predict", "serve")
PREDICT = "predict --checkpoint=out/mrpc --input=a.tsv --output=b.tsv"
EVALUATE = "evaluate --task_name=MRPC --checkpoints=out/mrpc --output_dir=out/eval"
EXPORT = "export a --format=saved_model --output=b"
FILES = {"checkpoint": "out/mrpc", "files": {"input": "a.tsv", "output": "b.tsv"}}
TASKS = {"checkpoints": "out/mrpc", "tasks": "MRPC", "output_dir": "out/eval"}


def parse(line):
    return lines.parse(*line.split(" "))


def stored(tmp_path, keys):
    (tmp_path / "job.json").write_text("\ufeff" + json.dumps(keys), encoding="utf-8")
    return f"--job={tmp_path / 'job.json'}"


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        (PREDICT, "files", (FilePair("a.tsv", "b.tsv"),)),
        (f"{PREDICT} --text_a=q --nohas_header", "columns", Columns(text_a="q", has_header=False)),
        (f"{PREDICT} --skip_bad_rows", "skip_bad_rows", True),
        (f"{PREDICT} --precision=bfloat16", "machine.precision", "bfloat16"),
        (f"{EVALUATE} --data_dir=d", "tasks", (TaskEntry("MRPC", "d"),)),
        (f"{EVALUATE} --label_column=mood", "tasks", (TaskEntry("MRPC", columns=LabelledColumns(label_column="mood")),)),
        (f"{EVALUATE} --task_name=MRPC,rte", "tasks", (TaskEntry("MRPC"), TaskEntry("rte"))),
        (f"{EVALUATE} --checkpoints=a:all,b", "checkpoints", ("a:all", "b")),
        (f"{EVALUATE} --nodo_lower_case --max_seq_length=64", "model", ModelOverrides(max_seq_length=64, do_lower_case=False)),
        (f"{EVALUATE} --num_gpus=1", "machine.devices", DeviceSettings(num_gpus=1)),
        ("evaluate --task_name=STS-B --zero_shot", "checkpoints", (":default",)),
        ("export --format=saved_model out/mrpc --output=b --pairs", "runs", ("out/mrpc",)),
        (f"{EXPORT} --pairs", "options.pairs", True),
        ("export --compare out/mrpc out/squad", "runs", ("out/mrpc", "out/squad")),
        ("serve --port=0 out/mrpc --admin", "address.admin", True),
        ("serve out/mrpc out/cola", "runs", ("out/mrpc", "out/cola")),
        ("fill-mask out/p --text=[MASK]", "top", 5),
        ("encode --input=a --output=b.npz --layers=-1,-2", "options.layers", (-1, -2)),
    ],
)
def test_flags_become_settings(line, name, expected):
    assert operator.attrgetter(name)(parse(line).settings) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predict --checkpoint=x", "--input and --output are required, or --job=FILE"),
        ("predict --checkpoint=x --input=a", "--input needs the other of --input and --output"),
        ("predict --input=a --output=b", "--checkpoint is required"),
        (f"{PREDICT} -- --runner=DirectRunner", "'--runner=DirectRunner' after -- is for Apache Beam; add --beam"),
        (f"{PREDICT} --check_replicas_every_n_steps=1", "--help=all lists all flags"),
        ("evaluate --checkpoints=a --output_dir=b", "--task_name is required, or --job=FILE"),
        ("evaluate --checkpoints=a --output_dir=b --data_dir=d", "--data_dir is the folder of a task: add --task_name"),
        ("evaluate --task_name=MRPC --output_dir=b", "--checkpoints is required"),
        ("evaluate --task_name=MRPC --checkpoints=a", "--output_dir is required"),
        (f"{EVALUATE} --strategy=mirrored", "--help=all lists all flags"),
        (f"{EVALUATE} --job=none.yaml", "none.yaml: cannot read the job: No such file or directory"),
        (f"{EVALUATE} more", "unexpected argument 'more'"),
        (f"{EVALUATE} --task_name=MRPC,", "--task_name=MRPC,: a name is empty; remove the extra comma"),
        ("export --format=saved_model --output=b", "export: RUN ... missing: python -m bert_tf export RUN ..."),
        ("export a b --format=saved_model --output=b", "--format=saved_model: one run or checkpoint, not 2"),
        ("export a --output=b", "--format is required"),
        ("export a --format=saved_model", "--output is required"),
        ("export --compare", "export: RUN ... missing: python -m bert_tf export RUN ..."),
        ("export a --format=saved_modle --output=b", "did you mean saved_model"),
        ("serve", "serve: RUN ... missing: python -m bert_tf serve RUN ...;"),
        ("search", "--index is required"),
        ("search --index=a.npz", "give exactly one of --query and --queries"),
        ("encode --input=a", "--output is required"),
        ("encode --output=a.npz", "--input is required"),
        ("encode --input=a --output=b.npz --layers=x", "--layers=x: write whole numbers"),
        ("fill-mask p", "give exactly one of --text and --input"),
        ("fill-mask p --text=[MASK] --input=a", "give exactly one of --text and --input"),
        ("fill-mask p --input=a", "--input and --output go together"),
        ("fill-mask p --text=[MASK] --output=a.jsonl", "--input and --output go together"),
        ("fill-mask p --engine=openvino --text=[MASK]", "Unknown command line flag 'engine'"),
        ("fill-mask a b", "fill-mask: 2 names given, CHECKPOINT expected"),
        ("serve a b/a", "two models are named a"),
        ("explain a --text=b --method=occlusion --steps=64", "--steps: is for --method=integrated_gradients, not occlusion"),
        ("report a --data_dir=b", "--data_dir: only --explain=N reads data"),
        (
            f"{EVALUATE} --data=a.tsv --data_dir=b",
            "a.tsv and b: a file of examples, and a folder of the task's files; name one",
        ),
        (
            "calibrate a --data=a.tsv --data_dir=b",
            "a.tsv and b: a file of examples, and a folder of the task's files; name one",
        ),
        ("calibrate a --check --seed=3", "--seed: --check chooses no rule; leave one of both out"),
        ("calibrate a --check --threshold=f1", "--threshold: --check chooses no rule; leave one of both out"),
    ],
)
def test_mistakes_are_one_line(line, message):
    assert message in refusal(FlagError, parse, line)


def test_a_job_file_has_lists_and_entries_and_what_follows_two_hyphens_is_for_beam(tmp_path):
    tasks = ["MRPC", {"name": "custom", "file": "more.csv", "text_a": 2, "label_column": "mood"}]
    keys = {**TASKS, "checkpoints": ["a:all", "b"], "tasks": tasks, "max_seq_length": 64, "eval_batch_size": 8}
    job = parse(f"evaluate {stored(tmp_path, keys)}").settings
    own = TaskEntry("custom", file="more.csv", columns=LabelledColumns(text_a="2", label_column="mood"))
    assert (job.checkpoints, job.tasks) == (("a:all", "b"), (TaskEntry("MRPC"), own))
    assert (job.model, job.eval_batch_size) == (ModelOverrides(max_seq_length=64), 8)
    job = parse(f"evaluate {stored(tmp_path, keys)} --checkpoints=c --eval_batch_size=9").settings
    assert (job.checkpoints, job.tasks[0].name, job.eval_batch_size) == (("c",), "MRPC", 9)
    keys = {**FILES, "text_a": 1, "skip_bad_rows": True, "n_best_size": 3, "null_score_diff_threshold": -1}
    job = parse(f"predict {stored(tmp_path, keys)}").settings
    assert (job.files, job.columns, job.skip_bad_rows) == ((FilePair("a.tsv", "b.tsv"),), Columns(text_a="1"), True)
    assert job.rules.given() == {"n_best_size": 3, "null_score_diff_threshold": -1.0}
    job = parse(f"predict {stored(tmp_path, keys)} --input=d --output=e --noskip_bad_rows").settings
    assert (job.files, job.skip_bad_rows) == ((FilePair("d", "e"),), False)
    assert parse(PREDICT).beam is None
    assert parse(f"{PREDICT} --beam").beam.arguments == ()
    assert parse(f"{PREDICT} --beam -- --runner=FlinkRunner --x=2").beam.arguments == ("--runner=FlinkRunner", "--x=2")


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("evaluate", {"checkpoint": "x"}, "unknown key 'checkpoint'; did you mean checkpoints?"),
        ("evaluate", {"precision": "float32"}, "unknown key 'precision'"),
        ("evaluate", {"tasks": [{"name": "AX", "splt": "dev"}]}, "unknown setting 'splt'; did you mean split?"),
        ("evaluate", {"tasks": [{"file": "x.tsv"}]}, "name is required"),
        ("evaluate", {"tasks": []}, "expected a list with an entry"),
        ("evaluate", {"eval_batch_size": 0}, "eval_batch_size=0: expected at least 1"),
        ("evaluate", {"checkpoints": [3]}, "checkpoints=[3]: expected names"),
        ("evaluate", {"output_dir": None}, "--output_dir is required"),
        ("predict", {"null_score_diff_threshold": "a"}, "null_score_diff_threshold='a': expected a number"),
        ("predict", {"files": "a.tsv"}, "'a.tsv': expected a mapping of input, output, output_format"),
        ("predict", {"files": [{"input": "a.tsv"}]}, "output is required"),
        ("predict", {"label_column": "mood"}, "unknown key 'label_column'"),
    ],
)
def test_mistakes_in_a_job_file_name_file_and_key(tmp_path, name, keys, message):
    job = stored(tmp_path, {**(TASKS if name == "evaluate" else FILES), **keys})
    assert refusal(FlagError, parse, f"{name} {job}").removeprefix(f"{tmp_path}/job.json: ").startswith(message)


def test_a_key_that_yaml_reads_as_a_switch_is_unknown(tmp_path):
    (tmp_path / "job.yaml").write_text("files: [{input: a.csv, output: b.csv, on: x}]")
    assert "unknown setting 'True'" in refusal(FlagError, parse, f"predict --job={tmp_path}/job.yaml --checkpoint=c")


def test_settings_of_extensions_are_the_same_when_they_are_pickled():
    flags = {"checkpoints": "x", "task_name": "STS-B", "output_dir": "y", "zero_shot": True}
    for made in (
        run_spec.configured(task_name="MRPC", ema=0.9),
        read_settings(EvaluateSettings, flags),
        read_settings(ServeConfig, {"runs": ["x"], "encode": True}),
    ):
        assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  (its own)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"tasks: [MRPC\noutput_dir: e\n", ":2: neither YAML nor JSON: "),
        (b"- a\n", ": expected a mapping of keys to values"),
        (b"output_dir: e\ntasks: \xff\n", ":2: not UTF-8"),
        (b"output_dir: e\ntasks: MRPC\noutput_dir: f\n", ":3: the key 'output_dir' appears twice"),
    ],
)
def test_an_unusable_job_file_is_one_line(tmp_path, data, message):
    path = tmp_path / "job.yaml"
    path.write_bytes(data)
    assert refusal(FlagError, parse, f"evaluate --job={path}").startswith(f"{path}{message}")


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_is_one_line(name, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "parse", stop)
    assert lines.run(name) == 130
    assert capsys.readouterr().err == f"error: {lines.command(name).stopped}\n"
