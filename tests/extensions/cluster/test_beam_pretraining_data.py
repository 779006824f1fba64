"""Data to pre-train on as a pipeline of Apache Beam: the same shards."""

import numpy as np
import pytest

from tests import classifier
from tests.extensions.pretrain.corpus.conftest import TOKENS

pytestmark = pytest.mark.several_machines


@pytest.fixture
def flags(tmp_path):
    """Flags of a command whose text is in three files, with an empty one beside them, but for the output."""
    draw = np.random.default_rng(4)
    for name in ("a", "b", "c"):
        lines = (" ".join(draw.choice(list("abcdefghij"), draw.integers(1, 9))) for _ in range(200))
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" + "\n" * (draw.random() < 0.2) for line in lines))
    (tmp_path / "d.txt").touch()
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    values = {"input_file": tmp_path / "?.txt", "vocab_file": tmp_path / "vocab.txt", "num_shards": 2, "max_seq_length": 32}
    return ["pretraining-data", *(f"--{name}={value}" for name, value in values.items())]


def run(flags, output, *more):
    return classifier.pretraining_data([*flags, f"--output_file={output}", "--workers=1", *more])


def test_shards_are_those_of_one_machine(flags, tmp_path, capsys):
    assert run(flags, tmp_path / "here" / "x.tfrecord") == 0
    said = capsys.readouterr().out.replace("here", "there")
    assert run(flags, tmp_path / "there" / "x.tfrecord", "--beam", "--", "--runner=FnApiRunner") == 0
    assert capsys.readouterr().out == said
    files = {path.name for path in (tmp_path / "there").iterdir()}
    assert files == {"x-00000-of-00002.tfrecord", "x-00001-of-00002.tfrecord", "x.tfrecord.json"}
    for name in files - {"x.tfrecord.json"}:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_a_file_that_cannot_be_used_is_one_line(flags, tmp_path, capsys):
    (tmp_path / "b.txt").write_bytes(b"a\n\xff\n")
    assert run(flags, tmp_path / "x", "--beam", "--", "--runner=FnApiRunner") == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith("b.txt:2: not UTF-8; convert the file from its encoding, as with iconv -f ENCODING -t UTF-8")
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--input_file=-", "--beam"], "--beam: workers cannot read the pipes of this process"),
        (["--output_file=gs://bucket/x", "--beam"], "outputs are written to the local disk; name a local path, and copy it"),
        (["--beam", "--", "--no_such_option=1"], "Apache Beam has no option --no_such_option"),
        (["--", "--runner=FnApiRunner"], "after -- is for Apache Beam; add --beam"),
    ],
)
def test_what_beam_cannot_do_is_one_line(flags, tmp_path, capsys, more, said):
    assert run(flags, tmp_path / "x", *more) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
