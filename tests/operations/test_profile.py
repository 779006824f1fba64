from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from bert_tf.commands import profile
from bert_tf.profiling.operations import operations_file
from tests.profiling import recorded


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "profile").mkdir()
    operations_file.write(tmp_path / "profile" / "operations.json", recorded.record(peak=0.1))
    return tmp_path


def run(capsys, *argv) -> tuple[int, str, str]:
    status = profile.main(["profile", *map(str, argv)])
    return status, *capsys.readouterr()


def test_prints_all_tables(capsys, folder):
    status, out, err = run(capsys, folder)
    assert (status, err) == (0, "")
    heads = [line.split()[0] for line in out.splitlines() if line.startswith(("model", "phase", "type ", "scope", "ms/step"))]
    assert heads == ["model", "phase", "type", "scope", "ms/step"]


def test_one_table_in_part(capsys, folder):
    found = json.loads(run(capsys, "--table=groups", folder, "--depth=1", "--format=json")[1])
    assert [row["path"] for row in found["groups"]] == ["bert", "(clip)"]
    found = json.loads(run(capsys, folder, "--top=2", "--format=json")[1])
    assert [row["name"] for row in found["ops"]] == [recorded.BATCH, recorded.PRODUCT]
    assert found["model"]["total"]["time_us"] == 56
    assert run(capsys, folder, "--table=ops", "--top=2")[1].count("\n") == 4  # head, two rows, how many are left


def test_tsv_is_read_as_such(capsys, folder):
    rows = list(csv.DictReader(run(capsys, folder, "--table=ops", "--format=tsv")[1].splitlines(), delimiter="\t"))
    assert len(rows) == 9
    row = rows[1]
    assert (row["name"], row["scope"], float(row["time_us"]), row["uses"]) == (recorded.PRODUCT, "bert/pooler/dense", 20, "")


def test_a_given_peak_takes_the_place_of_the_measured_one(capsys, folder):
    found = json.loads(run(capsys, folder, "--format=json", "--matmul_peak_gflops=0.0576")[1])
    assert found["model"]["total"]["of_peak"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "profile: 0 folders given, the output folder of one run wanted"),
        (["a", "b"], "profile: 2 folders given"),
        (["n" * 300], "nnn: File name too long"),
        (["none"], "none: no such folder; name the --output_dir of a run"),
        (["."], ".: no profile/operations.json; train with --profile_steps=20-30 to record some steps"),
        ([".", "--table=op"], "unknown value 'op'; did you mean ops?"),
        ([".", "--format=tsv"], "--format=tsv: has one table; name it, as --table=ops"),
        ([".", "--depth=0"], "--depth"),
        ([".", "--dept=1"], "Unknown command line flag 'dept'"),
    ],
)
def test_problems_are_one_line(capsys, monkeypatch, tmp_path, argv, problem):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err


def test_a_damaged_record_is_one_line(capsys, folder):
    (folder / "profile" / "operations.json").write_text("{")
    status, _, err = run(capsys, folder)
    assert (status, err.count("\n")) == (2, 1)


def test_help_names_every_flag(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert all(f"--{flag.name}" in out for flag in profile.FLAGS)


def test_needs_no_tensorflow(folder):
    code = (
        "import sys; from bert_tf import __main__ as m; m.main(['bert_tf', 'profile', sys.argv[1]]);"
        "assert 'tensorflow' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
