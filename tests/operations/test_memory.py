from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bert_tf.commands import memory
from tests.profiling.excerpt import REQUESTED, TRACE
from tests.report import example


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


def run(capsys, *argv) -> tuple[int, str, str]:
    status = memory.main(["memory", *map(str, argv)])
    return status, *capsys.readouterr()


def test_reports_as_text(capsys, trace):
    status, out, err = run(capsys, "report", trace)
    assert (status, err) == (0, "")
    assert out.startswith("18 operations, 17 outputs")


def test_json_is_all_of_standard_output(capsys, trace, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, err = run(capsys, "report", trace, "--json", f"--pictures={tmp_path / 'pictures'}")
    assert status == 0
    assert json.loads(out)["requested_bytes"] == REQUESTED
    assert "wrote" in err
    assert len(list((tmp_path / "pictures").iterdir())) == 2


def test_depth_and_top(capsys, trace):
    found = json.loads(run(capsys, "report", "--json", trace, "--depth=1", "--top=3")[1])
    assert {scope.count("/") for scope in found["by_scope"]} == {0}
    assert len(found["largest"]) == 3


def test_compares(capsys, trace):
    assert json.loads(run(capsys, "diff", trace, trace, "--json")[1])["only_b"]["count"] == 0
    assert "outputs of another size: 0" in run(capsys, "diff", trace, trace)[1]


@pytest.fixture
def live(tmp_path):
    path = tmp_path / "live.tsv"
    path.write_text(example.LIVE)
    return path


def test_peak_as_text_and_json(capsys, live):
    assert run(capsys, "peak", live)[1].startswith("step 8, cpu: 210 MB at the peak, 2.0 ms after the first allocation")
    status, out, err = run(capsys, "peak", live, "--json", "--top=1", "--allocator=cpu")
    found = json.loads(out)
    assert (status, err, found["peak_bytes"], len(found["largest"])) == (0, "", 200 << 20, 1)


def test_picture_of_the_peak(capsys, live, tmp_path):
    pytest.importorskip("matplotlib")
    status, _, err = run(capsys, "peak", live, f"--pictures={tmp_path / 'pictures'}")
    picture = tmp_path / "pictures" / "live_memory.png"
    assert (status, err) == (0, f"wrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("action", "kind", "other"), [("report", "live", "peak"), ("diff", "live", "peak"), ("peak", "trace", "report")]
)
def test_file_of_another_action(capsys, live, trace, action, kind, other):
    path = {"live": live, "trace": trace}[kind]
    files = [path] * (2 if action == "diff" else 1)
    assert run(capsys, action, *files) == (2, "", f"error: {path}: is read by: python -m bert_tf memory {other} {path}\n")


def test_command_for_a_file_with_spaces_in_its_name(capsys, live):
    path = live.rename(live.with_name("live memory.tsv"))
    assert f": python -m bert_tf memory peak '{path}'\n" in run(capsys, "report", path)[2]


@pytest.mark.parametrize(
    ("action", "text", "problem"),
    [
        ("report", "SrcNode a 0\n", "no operation put anything out: there is nothing to draw"),
        ("report", "SrcNode a 1\nOutput 0 0 0 cpu 1\n", "no operation put anything out: there is nothing to draw"),
        ("peak", "# live memory of step 1\n# allocator\tcpu\n", "nothing was alive on cpu: there is nothing to draw"),
    ],
)
def test_nothing_to_draw(capsys, tmp_path, action, text, problem):
    path = tmp_path / "file"
    path.write_text(text)
    status, out, err = run(capsys, action, path, f"--pictures={tmp_path / 'pictures'}")
    assert (status, err) == (2, f"error: {path}: {problem}\n")
    assert out  # the report is there all the same
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["repot"], "unknown action 'repot'; did you mean report? (known: diff, peak, plan, report)"),
        (["report"], "memory report: 0 files given, FILE wanted"),
        (["diff", "a"], "memory diff: 1 files given, A and B wanted"),
        (["report", "none.txt"], "none.txt: cannot read: No such file or directory"),
        (["peak", "none.tsv"], "none.tsv: cannot read: No such file or directory"),
        (["report", "x", "--dept=1"], "Unknown command line flag 'dept'"),
        (["report", "x", "--depth=0"], "--depth"),
    ],
)
def test_problems_are_one_line(capsys, monkeypatch, tmp_path, argv, problem):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err


def test_help_names_every_action(capsys):
    for argv in ([], ["--help"], ["report", "--help"]):
        status, out, _ = run(capsys, *argv)
        assert status == 0
        assert all(f"python -m bert_tf memory {name}" in out for name in ("report FILE", "peak FILE", "diff A B", "plan"))


def test_needs_no_tensorflow_and_no_matplotlib(trace, live):
    code = (
        "import sys; from bert_tf import __main__ as m; m.main(['bert_tf', 'memory', 'report', sys.argv[1]]);"
        "m.main(['bert_tf', 'memory', 'peak', sys.argv[2]]);"
        "assert not {'tensorflow', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(trace), str(live)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
