import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.errors import CheckpointError
from tests.tiny import held

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
ENTRIES = {"scope/large": np.arange(1000, dtype=np.float32).reshape(10, 100), "small": np.array([7, 8], np.int64)}


def write_v1(prefix: Path) -> None:
    """Writes with a Saver in the format of the first published checkpoints: one file, without a suffix."""
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = {name: tf1.get_variable(name, initializer=value) for name, value in ENTRIES.items()}
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver(variables, write_version=tf1.train.SaverDef.V1).save(session, str(prefix), write_meta_graph=False)


WRITERS = {"V1": write_v1, "V2": lambda prefix: write_checkpoint(prefix, ENTRIES)}
FILES = {"V1": "model.ckpt", "V2": "model.ckpt.data-00000-of-00001", "V2 index": "model.ckpt.index"}


@pytest.fixture(params=WRITERS)
def prefix(request, tmp_path):
    WRITERS[request.param](tmp_path / "model.ckpt")
    return tmp_path / "model.ckpt"


def test_reads_what_was_written(prefix):
    reader = CheckpointReader(prefix)
    assert reader.shapes == {"scope/large": (10, 100), "small": (2,)}
    for name, value in ENTRIES.items():
        assert reader[name].dtype == value.dtype
        np.testing.assert_array_equal(reader[name], value)
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(prefix))}: no entry bias$"):
        reader["bias"]


def flipped(content):
    content = bytearray(content)
    content[20] ^= 4
    return content


DAMAGES = {f"{kept} kept": lambda content, kept=kept: content[: int(kept * len(content))] for kept in (0.0, 0.01, 0.5, 0.99)}


@pytest.mark.parametrize("damage", [*DAMAGES, "flipped bit"])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file(tmp_path, file, damage):
    WRITERS[file[:2]](tmp_path / "model.ckpt")
    damaged = tmp_path / FILES[file]
    damaged.write_bytes(DAMAGES.get(damage, flipped)(damaged.read_bytes()))
    with pytest.raises(CheckpointError, match=r"^\S+model\.ckpt: damaged [^\n]+$"):
        held(tmp_path / "model.ckpt")


def test_names_the_entry_that_is_damaged_or_gone(tmp_path):
    write_checkpoint(tmp_path / "model.ckpt", ENTRIES)
    data = tmp_path / FILES["V2"]
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged at small: Read less bytes than requested; fetch it again$"):
        held(tmp_path / "model.ckpt")
    data.unlink()
    with pytest.raises(CheckpointError, match="damaged at small: .*No such file or directory"):
        CheckpointReader(tmp_path / "model.ckpt")["small"]


def test_writing_where_a_file_is_in_the_way(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"^\[Errno None\] /\S+/file/\S+; Not a directory"):
        write_checkpoint(tmp_path / "file" / "model.ckpt", ENTRIES)


def test_a_checkpoint_is_written_where_eager_execution_is_off(tmp_path):
    """As in a job of several machines."""
    entries = {"a": np.arange(3, dtype=np.float32), "b": np.array(7, np.int64)}
    with tf.Graph().as_default():
        write_checkpoint(tmp_path / "x.ckpt", entries)
    reader = CheckpointReader(tmp_path / "x.ckpt")
    assert {name: reader[name].tolist() for name in reader.shapes} == {"a": [0, 1, 2], "b": 7}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b.ckpt", r"/b\.ckpt: no checkpoint of this name; the folder holds a\.ckpt-1, b\.ckpt-2$"),
        *((name, r": no checkpoint of this name$") for name in ("empty/model.ckpt", "no/such/folder/model.ckpt", ".")),
        ("vocab.txt", r"vocab\.txt: damaged checkpoint: .*not an sstable"),
    ],
)
def test_what_is_no_checkpoint(tmp_path, name, message):
    (tmp_path / "vocab.txt").write_text("[PAD]\n" * 100)
    (tmp_path / "empty").mkdir()
    for prefix in ("b.ckpt-2", "a.ckpt-1"):
        write_checkpoint(tmp_path / prefix, ENTRIES)
    with pytest.raises(CheckpointError, match=message):
        CheckpointReader(tmp_path / name)
