"""What is not there is said before TensorFlow is imported."""

import subprocess
import sys

import pytest

from tests import lines

LINES = (
    ("calibrate", ["a", "--data_dir={}"], "no such folder; --data_dir must hold"),
    ("predict", ["--checkpoint={}", "--input=a", "--output=b"], "no checkpoint or folder of this name (--checkpoint)"),
    ("serve", ["{}"], "no checkpoint or folder of this name (--run)"),
    ("evaluate", ["--checkpoints=a:all,{}", "--task_name=MRPC", "--output_dir=b"], "no checkpoint or folder of this name"),
    ("encode", ["--input={}", "--output=b.npz"], "cannot read the file: No such file or directory (--input)"),
)
SCRIPT = """
import sys
from bert_tf.cli import missing_paths
from bert_tf.errors import BertError
try:
    missing_paths.refuse({"train_file": sys.argv[1]})
except BertError as error:
    print(error)
print([name for name in sys.modules if name.partition(".")[0] == "tensorflow"])
"""


@pytest.mark.parametrize(("command", "words", "problem"), LINES, ids=[line[0] for line in LINES])
def test_a_missing_path_is_named_with_its_flag(tmp_path, command, words, problem):
    path = tmp_path / "none" / "there"
    with pytest.raises(Exception, match="there") as caught:
        lines.parse(command, *(word.format(path) for word in words))
    assert problem in str(caught.value)


@pytest.mark.parametrize("value", ["-", "a?.csv", "gs://bucket/a", "out/run:all", "org/model", ":default"])
def test_what_later_checks_explain_is_left_to_them(value):
    lines.parse("predict", f"--checkpoint={value}", "--input=-", "--output=-")


def test_tensorflow_is_not_imported(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "x.csv"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'x.csv'}: cannot read the file: No such file or directory (--train_file)",
        "[]",
    ]
