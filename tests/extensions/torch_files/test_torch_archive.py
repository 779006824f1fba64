"""Files of torch.save: what is read, and that nothing else is."""

import json
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.weight_files import WeightFiles
from bert_tf.errors import CheckpointError
from bert_tf.extensions.checkpoint.tensors import HUGGINGFACE, SafeTensors
from bert_tf.extensions.torch_files import pickled, torch_archive
from bert_tf.extensions.torch_files.torch_archive import TorchArchive
from tests import torch_files
from tests.checkpoints.test_huggingface import assert_original
from tests.huggingface import write_folder
from tests.torch_files import ARRAYS, View


@pytest.fixture
def path(tmp_path):
    return torch_files.write(tmp_path / "pytorch_model.bin", ARRAYS)


def test_names_shapes_and_values(path):
    archive = TorchArchive(path)
    assert archive.entries == {name: (array.shape, array.dtype.name) for name, array in ARRAYS.items()}
    for name, array in ARRAYS.items():
        assert archive.read(name).dtype == array.dtype
        np.testing.assert_array_equal(archive.read(name), array)


def test_views_of_one_storage(tmp_path):
    values = np.arange(12, dtype=np.float32)
    views = {
        "whole": View(values, 0, [3, 4], [4, 1]),
        "transposed": View(values, 0, [4, 3], [1, 4], key="0"),
        "part": View(values, 5, [2, 2], [4, 2], key="0"),
        "one": View(values, 11, [], [], key="0"),
        "repeated": View(values, 2, [3, 2], [0, 1], key="0"),
    }
    archive = TorchArchive(torch_files.write(tmp_path / "x.bin", views))
    table = values.reshape(3, 4)
    assert archive.read("transposed").tolist() == table.T.tolist()
    assert archive.read("part").tolist() == [[5, 7], [9, 11]]
    assert archive.read("one") == 11
    assert archive.read("repeated").tolist() == [[2, 3]] * 3


def test_it_is_read_as_safetensors_are_alone_and_in_parts(tmp_path):
    torch_files.write(tmp_path / "pytorch_model-1.bin", {"a": ARRAYS["a.weight"]})
    torch_files.write(tmp_path / "pytorch_model-2.bin", {"b": ARRAYS["c"]})
    index = {"weight_map": {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    tensors = SafeTensors(tmp_path)
    assert (tensors.layout, tensors.entries) == (HUGGINGFACE, {"a": ((2, 3), "float32"), "b": ((1, 1), "float16")})
    assert tensors.read("b") == 0.5
    safetensors.numpy.save_file({"a": np.zeros(1)}, tmp_path / "model.safetensors")
    assert SafeTensors(tmp_path).entries == {"a": ((1,), "float64")}


@pytest.mark.parametrize("wrapper", ["", "bert.", "module.bert.", "_orig_mod.", "model."])
@pytest.mark.parametrize("shards", [False, True])
def test_a_folder_of_it_is_converted(tmp_path, wrapper, shards):
    folder = write_folder(tmp_path / "hf")
    arrays = {f"{wrapper}{name}": one for name, one in safetensors.numpy.load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    assert not huggingface.is_huggingface_folder(folder)
    if shards:
        parts = {"pytorch_model-1.bin": list(arrays)[:5], "pytorch_model-2.bin": list(arrays)[5:]}
        for file, names in parts.items():
            torch_files.write(folder / file, {name: arrays[name] for name in names})
        index = {"weight_map": {name: file for file, names in parts.items() for name in names}}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    else:
        torch_files.write(folder / "pytorch_model.bin", arrays, root="pytorch_model")
    assert huggingface.is_huggingface_folder(folder)
    made = huggingface.converted(folder, tmp_path / "out")
    assert_original(CheckpointReader(made / "bert_model.ckpt"))


def read_all(path):
    weights = WeightFiles(path)
    return {name: weights.read(name) for name in weights.entries}


def refused(path):
    with pytest.raises(CheckpointError) as caught:
        read_all(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


CALL = b"\x80\x02cbuiltins\nexec\n" + torch_files.text("raise SystemExit") + b"\x85R."
ONE = View(np.ones(6, np.float32), 0, [2, 3], [3, 1])
PICKLES = [
    (CALL, "not weights alone: the name builtins.exec; save the weights as safetensors"),
    (b"\x80\x02cos\nsystem\n" + torch_files.text("true") + b"\x85R.", "the name os.system"),
    (b"\x80\x04" + b"\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.", "the name posix.system"),
    (b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n)R.", "the name torch._utils._rebuild_tensor_v3"),
    (b"(iposix\nsystem\n.", "the instruction INST"),
    (b"\x80\x02cx\ny\n)\x81.", "the instruction NEWOBJ"),
    (b"\x80\x02\x82\x01.", "the instruction EXT1"),
    (b"\x80\x02ccollections\nOrderedDict\n(K\x01K\x02tR.", "an OrderedDict of other values"),
    (b"\x80\x02}cx\ny\nK\x01s.", "a key that is no text"),
    (b"\x80\x02}(((((ttttK\x01u.", "a key that is no text"),
    (b"\x80\x02]K\x01K\x02s.", "values put into something else than a dict"),
    (b"\x80\x02}K\x01b.", "attributes that are no dict"),
    (b"\x80\x02K\x01}b.", "values put into something else than a dict"),
    (b"\x80\x02K\x01)R.", "a call of something without a name"),
    (
        b"\x80\x02(" + torch_files.text("storage") + b"cbuiltins\nexec\n" + torch_files.text("0") * 2 + b"K\x01tQ.",
        "storage builtins.exec",
    ),
    (b"\x80\x02K\x01Q.", "a reference to something else than a storage"),
    (b"\x80\x02h\x07.", "an unknown reference"),
    (b"\x80\x02}", "a damaged pickle (ValueError)"),
    (b"\x80\x02.", "nothing is left"),
    (b"\x80\x02}.", "it holds no tensors, but nothing"),
    (b"\x80\x02K\x01.", "it holds no dict of tensors"),
    (b"\x80\x02" + b"N0" * 10, "the instruction POP"),
    (b"\x80\x02" + b"N" * 1_000_002 + b".", "more than 1000000 instructions"),
]


@pytest.mark.parametrize(("pickle", "said"), PICKLES)
def test_what_is_no_description_of_tensors_is_refused_by_name(tmp_path, pickle, said):
    assert said in refused(torch_files.write(tmp_path / "x.bin", {"a": ONE}, pickle=pickle))


VIEWS = [
    (ONE._replace(shape=[2, 4]), "a tensor that ends at element 6 of a storage of 6"),
    (ONE._replace(offset=1), "a tensor that ends at element 6 of a storage of 6"),
    (ONE._replace(shape=[1 << 40, 1 << 40], strides=[0, 0]), "its tensors would take 4835703278458516698824704 bytes"),
    (ONE._replace(strides=[1 << 62, 1]), "a tensor whose offset, shape or strides are no sizes"),
    (ONE._replace(strides=[-3, 1]), "a tensor whose offset, shape or strides are no sizes"),
    (ONE._replace(strides=[3]), "a tensor whose offset, shape or strides are no sizes"),
    (ONE._replace(shape=[1] * 17, strides=[1] * 17), "a tensor whose offset, shape or strides are no sizes"),
    (ONE._replace(elements=7), "damaged weights: 'a' needs 28 bytes, there are 24 bytes"),
    (ONE._replace(key="7"), "damaged weights: 'a' needs 24 bytes, there are none"),
    (ONE._replace(key="../version"), "damaged weights: 'a' needs 24 bytes, there are none"),
]


@pytest.mark.parametrize(("view", "said"), VIEWS)
def test_a_tensor_lies_within_its_storage(tmp_path, view, said):
    assert said in refused(torch_files.write(tmp_path / "x.bin", {"a": view}))


def test_many_views_of_one_storage_are_refused_before_any_is_read(tmp_path):
    values = np.zeros(100_000, np.float32)
    views = {str(n): View(values, 0, values.shape, [1], key=None if n == 0 else "0") for n in range(50)}
    assert "its tensors would take 20000000 bytes" in refused(torch_files.write(tmp_path / "x.bin", views))


def zipped(path, change):
    path.write_bytes(change(path.read_bytes()))
    return path


def test_damaged_files_are_one_line(path, tmp_path):
    data = path.read_bytes()
    (tmp_path / "empty.bin").write_bytes(b"")
    assert "damaged weights: it does not end as a zip file" in refused(tmp_path / "empty.bin")
    assert "No such file" in refused(tmp_path / "gone.bin")
    assert "it does not end as a zip file" in refused(zipped(path, lambda _: data[:-1]))
    assert "the checksum of a record differs" in refused(zipped(path, lambda _: data.replace(b"\0\0\x80?", b"\0\0\x81?", 1)))
    assert "its directory lies outside of it" in refused(
        zipped(path, lambda _: data[:-10] + struct.pack("<II", 1 << 20, 99) + b"\0\0")
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", bytes(100_000))
    assert "'archive/data.pkl' is compressed" in refused(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", "")
    assert "it holds no data.pkl" in refused(path)


def test_other_byte_orders_and_forms_of_old_versions_are_refused(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", torch_files.pickle_of({}))
        file.writestr("a/byteorder", "big")
    assert "its bytes are not little-endian" in refused(path)
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")
    assert "written by PyTorch before 1.6, in a form that is not read; save the weights as safetensors" in refused(path)


def test_a_large_pickle_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(pickled, "LARGEST", 50)
    assert "where at most 50 are expected" in refused(torch_files.write(tmp_path / "x.bin", {"a": ONE}))


def test_places_beyond_32_bits_are_in_the_extra_field():
    extra = struct.pack("<HHQQ", 1, 16, 5 << 32, 6 << 32)
    assert torch_archive._in_64(extra, (0xFFFFFFFF, 7, 0xFFFFFFFF)) == (5 << 32, 7, 6 << 32)


def test_the_values_of_a_tensor_are_those_of_its_bytes():
    assert pickled.tensors(torch_files.pickle_of({"a": ONE})) == {
        "a": pickled.StoredTensor(pickled.Storage("0", "float32", 6), 0, (2, 3), (3, 1))
    }


def test_any_change_of_a_file_is_read_or_refused(path):
    """Mutations of bytes, of lengths and of the pickle itself, with the checksums made right again."""
    draw, data, pickle = (
        random.Random(0),
        path.read_bytes(),
        torch_files.pickle_of({name: torch_files.contiguous(array) for name, array in ARRAYS.items()}),
    )
    outcomes = set()
    tracemalloc.start()
    for number in range(600):
        source = bytearray(pickle if number % 2 else data)
        for _ in range(draw.randint(1, 6)):
            source[draw.randrange(len(source))] = draw.choice([0, 1, 255, draw.randrange(256)])
        if draw.random() < 0.2:
            start = draw.randrange(len(source))
            source[start : start + draw.randint(1, 50)] = (
                draw.randbytes(draw.randint(0, 9)) if hasattr(draw, "randbytes") else b""
            )
        if number % 2:
            torch_files.write(path, ARRAYS, pickle=bytes(source))
        else:
            path.write_bytes(source)
        try:
            read_all(path)
            outcomes.add("read")
        except CheckpointError as error:
            outcomes.add("refused" if "\n" not in str(error) else str(error))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcomes == {"read", "refused"}
    assert peak < 1 << 26
