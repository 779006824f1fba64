"""`python -m bert_tf` and run_classifier.py."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bert_tf import __main__ as front
from bert_tf import extension
from bert_tf.io import streams

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _streams_of_pytest(monkeypatch):
    """The doors take the place of a process's standard streams, which here are pytest's."""
    monkeypatch.setattr(streams, "make_safe", lambda: None)


def test_help_has_a_line_on_each_command_and_is_an_error_without_one(capsys):
    text = front.help_text()
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?!   )", text)]
    assert {f"{name} {line}" for name, line in front.COMMANDS.items()} < set(entries)
    assert all(f"{group}:" in text.splitlines() for group in front.GROUPS)
    for word in ("--help", "--help=all", "-h", "help"):
        assert (front.main(["bert_tf", word]), capsys.readouterr()) == (0, (text, ""))
    assert (front.main(["bert_tf"]), capsys.readouterr()) == (2, ("", text))


UNKNOWN = "error: unknown command 'evalute'; did you mean evaluate? (known: benchmark, calibrate, card, "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["evalute"], UNKNOWN),
        (["data", "fecth"], "data: unknown action 'fecth'; did you mean "),
        (["memory", "reprot"], "memory: unknown action 'reprot'; did you mean "),
    ],
)
def test_a_misspelt_name_is_one_line_with_the_nearest(line, message, capsys):
    assert front.main(["bert_tf", *line]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert message in err


def test_every_command_is_a_module_and_none_is_left_out():
    folder = ROOT / "bert_tf" / "operations"
    paths = [path for path in (*folder.glob("*.py"), *folder.glob("*/__init__.py")) if "\nCOMMAND = " in path.read_text()]
    modules = {path.stem.replace("__init__", path.parent.name) for path in paths}
    modules |= {name.replace("-", "_") for name in extension.commands() if " " not in name}
    assert {name.replace("-", "_") for name in front.COMMANDS.keys() - {"benchmark"}} == modules


def test_hands_the_rest_of_the_line_to_the_command(monkeypatch):
    seen = []
    importlib = SimpleNamespace(import_module=lambda name: SimpleNamespace(main=lambda argv: seen.append((name, argv)) or 3))
    monkeypatch.setattr(front, "importlib", importlib)
    monkeypatch.setattr(sys, "path", [])
    assert front.main(["bert_tf", "benchmark", "--peers"]) == 3
    assert (seen, sys.path) == ([("benchmarks.command_line", ["benchmark", "--peers"])], [str(ROOT)])


def test_outside_of_a_clone_one_line_says_where_the_benchmark_is(monkeypatch, capsys):
    monkeypatch.setattr(front.home, "clone", lambda: None)
    assert front.run(["bert_tf", "benchmark"]) == 2
    message = "the benchmark is not installed with the package: clone the project, and run this command there"
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "error: stopped\n"),
        (ModuleNotFoundError("No module named 'absl'", name="absl"), 2, "pip install -r requirements.txt"),
        (PermissionError(13, "Permission denied", "site-packages/absl"), 2, "error: site-packages/absl: Permission denied"),
    ],
)
def test_what_fails_at_an_import_is_one_line(error, status, line, monkeypatch, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr(front.extension, "load", fail)
    assert front.run(["bert_tf", "classifier"]) == status
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--colour=blue", 2)])
@pytest.mark.parametrize("door", ["run_classifier.py", "bert_tf/__main__.py"])
def test_both_doors_exit_with_the_status_of_the_command(door, argument, status, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", argument] if door == "run_classifier.py" else ["x", "classifier", argument])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / door), run_name="__main__")
    assert caught.value.code == status


def test_run_classifier_is_the_classifier(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run_classifier.py"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(ROOT / "run_classifier.py"), run_name="__main__")
    assert capsys.readouterr().err.startswith("error: --task_name is required")


def test_no_command_loads_tensorflow_for_its_help():
    code = (
        "import sys; from bert_tf.__main__ import COMMANDS, main\n"
        "main(['x', '--help'])\n"
        "for name in COMMANDS:\n"
        "    main(['x', name, '--help'])\n"
        "    main(['x', name, '--help=all'])\n"
        "    assert 'tensorflow' not in sys.modules, name"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Command lines that read a missing file or model, which the message names.
READ_NOTHING = [
    "fine-tune --task_name=MRPC --init_checkpoint=none/x",
    "fine-tune --task_name=MRPC --data_dir=none/x",
    "fine-tune --task_name=custom --train_file=none/x.csv --dev_file=none/y.csv --output_dir=out",
    "fine-tune --task_name=MRPC --vocab_file=none/x",
    "pretrain --init_checkpoint=none/x --output_dir=out",
    "distill none/x --output_dir=out",
    "sweep none/x.yaml --output_dir=out",
    "predict --checkpoint=none/x --input=- --output=-",
    "predict --checkpoint=. --input=none/x.csv --output=b.csv",
    "predict --job=none/x.yaml",
    "evaluate --job=none/x.yaml",
    "calibrate none/x",
    "explain none/x --text=a",
    "serve none/x",
    "fill-mask none/x --text=[MASK]",
    "encode --input=none/x --output=a.npz",
    "search --index=none/x.npz --query=a",
    "export none/x --format=onnx --output=out",
    "card none/x",
    "vocabulary extend none/x --output=out --add=words.txt",
    "vocabulary show none/x",
    "data audit --task_name=MRPC --output_dir=out --checkpoint=none/x",
    "data check none/x",
    "memory report none/x",
    "memory diff none/x none/y",
    "checkpoint inspect none/x",
    "checkpoint diff none/x none/y",
    "report none/x",
    "profile none/x",
    "track none/x --tracker=mlflow",
]


# Other mistakes, and a part of their messages.
MISTAKEN = {
    "sweep wrong.yaml --output_dir=out": "learning_rate: 'abc' is not a number",
    "sweep wrong.yaml --output_dir=out --plan": "learning_rate: 'abc' is not a number",
    "sweep right.yaml --output_dir=out --search=tpe --budget=2": "--budget=2: write hours",
    "sweep right.yaml --output_dir=out --plan --trials=5": "--trials belongs to --search=random or --search=tpe",
    "sweep model.yaml --output_dir=out --plan": "none/x: no checkpoint of this name",
    "fine-tune --task_name=MRPC --learning_rate=abc": "--learning_rate=abc",
    "serve . --port=99999": "--port=99999",
}


def test_a_mistake_is_refused_before_tensorflow_is_imported(tmp_path):
    (tmp_path / "wrong.yaml").write_text("tasks: [MRPC]\nsettings: {learning_rate: [1e-5, abc]}")
    (tmp_path / "right.yaml").write_text("tasks: [MRPC]\nsettings: {learning_rate: [1e-5, 2e-5]}")
    (tmp_path / "model.yaml").write_text("tasks: [MRPC]\nsettings: {init_checkpoint: [none/x, none/y]}")
    said = refused_without_tensorflow(tmp_path, MISTAKEN)
    assert [part for part, message in zip(MISTAKEN.values(), said) if part not in message] == []


def test_a_missing_name_is_refused_before_tensorflow_is_imported(tmp_path):
    said = refused_without_tensorflow(tmp_path, READ_NOTHING)
    assert [message for message in said if not message.startswith("error: none/x")] == []
    assert list(tmp_path.iterdir()) == []


def refused_without_tensorflow(tmp_path, command_lines) -> list[str]:
    """The messages of commands in one process."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from bert_tf.__main__ import main, quick_import\n"
        # A thread that loads libraries holds standard error back meanwhile: of several commands, lines would change places.
        "quick_import.load_ahead = lambda: None\n"
        f"for line in {list(command_lines)}:\n"
        "    status = main(['x', *line.split()])\n"
        "    sys.stderr.write(f'{status} {\"tensorflow\" in sys.modules} {line}\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = done.stderr.splitlines()
    assert said[1::2] == [f"2 False {line}" for line in command_lines]
    return said[::2]
