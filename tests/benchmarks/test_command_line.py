"""The benchmark's command line, up to the first worker."""

import subprocess
import sys

import pytest

from benchmarks import command_line, results
from benchmarks.comparisons import OTHER


def test_defaults():
    settings = command_line.parse(["benchmark"])
    assert settings.suites == ("features", "train", "predict", "start", "memory")
    assert settings.sizes == ("default", "base")
    assert (settings.peers, settings.rounds, settings.steps, settings.threads) == (False, 5, 20, 2)
    assert settings.output_dir == "benchmarks"
    settings = command_line.parse(["benchmark", f"--peer_python=transformers={sys.executable}"])
    assert settings.peer_python == {"transformers": sys.executable}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--suites=trains", "--suites: unknown suite 'trains'; did you mean train?"),
        ("--suites=,", "--suites: name at least one of"),
        ("--sizes=large", "--sizes: unknown size 'large'"),
        ("--rounds=0", "rounds"),
        ("--peer_python=torch=/x", "--peer_python: unknown peer 'torch'"),
        ("--task_data=SQuAD2=/x", "--task_data: unknown task 'SQuAD2'; did you mean SQuAD?"),
        ("--peer_python=keras_hub", "keras_hub='': no such interpreter; write keras_hub=/path/to/bin/python"),
        ("--threads=", "--threads is empty"),
        ("--colour=blue", "--help=all lists all flags"),
        ("train", "unexpected argument 'train'"),
        ("--other_python=/no/such", "--other_python=/no/such: no such interpreter"),
        ("--data_dir=/no/such", "error: /no/such: no such folder; --data_dir must hold the files of MRPC"),
        ("--suites=squad --task_data=SQuAD=/no/such", "/no/such: no such folder; --data_dir must hold the files of SQuAD"),
        ("--suites=memory --sizes=default", "no comparison of these --suites has one of these --sizes"),
    ],
)
def test_an_unusable_flag_is_one_line(arguments, message, tmp_path, capsys):
    assert command_line.main(["benchmark", *arguments.split(), f"--output_dir={tmp_path}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line


def test_help_names_every_flag_without_tensorflow():
    code = "import sys; from benchmarks import command_line as b; b.main(['b', '--help']); print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(row.name in done.stdout for row in command_line.FLAGS)
    assert done.stdout.splitlines()[-1] == "False"


def test_hands_what_was_asked_for_to_the_session(project, tmp_path, monkeypatch, capsys):
    def run(comparisons, bench, output_dir, *, command, data):
        if "--peers" in command:
            raise KeyboardInterrupt
        assert [comparison.name for comparison in comparisons] == ["train", "train-128"]
        assert (bench.rounds, bench.environments.missing.keys()) == (2, {"transformers", "keras_hub", "model_garden", OTHER})
        assert data == f"{project.data_dir}; weights: $BERT_BASE_DIR"
        (output_dir / "results.md").write_text(command)

    monkeypatch.setenv("BERT_BASE_DIR", str(project.vocab_file.parent))
    monkeypatch.setattr(results, "run", run)
    folders = [f"--data_dir={project.data_dir}", f"--output_dir={tmp_path}"]
    arguments = ["--suites=train", "--sizes=default", "--rounds=2", *folders]
    assert command_line.main(["benchmark", *arguments]) == 0
    assert capsys.readouterr().out.startswith("python -m bert_tf benchmark --suites=train --sizes=default")
    assert command_line.main(["benchmark", *arguments, "--peers"]) == 130
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: stopped; the output folder holds")
