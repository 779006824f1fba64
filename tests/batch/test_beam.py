"""The same prediction as a pipeline of Apache Beam, on its direct runner."""

from __future__ import annotations

import functools

import pytest

from bert_tf.batch import beam, inputs, stream, trained
from bert_tf.batch.job import Columns, FilePair, Given
from bert_tf.batch.prediction import Predictor
from bert_tf.errors import BertError
from tests.batch.runs import ways

RUNNER = ["--runner=BundleBasedDirectRunner"]  # what DirectRunner comes to where Beam's own Prism is not there
ROWS = {"long.tsv": 2 * inputs.CHUNK + 5, "short.tsv": 3, "empty.tsv": 0}


def load(prefix: str) -> Predictor:
    """Makes the predictor of a worker."""
    model = trained.load(prefix, Given())
    reads = reader(model)
    return Predictor(model, reads.head, reads.labels, ways(batch_size=None))


def reader(model):
    return inputs.inputs(model, Columns(), task_name=None, skip_bad_rows=False)


@pytest.fixture(scope="module")
def prefix(run):
    return str(run / "model.ckpt-20")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beam")
    for name, rows in ROWS.items():
        lines = (f"{row}\t1\t2\train {'red ' * (row % 7)}.\t{'soup' if row % 3 else 'storm'} .\n" for row in range(rows))
        (folder / name).write_text("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(lines))
    return [FilePair(str(folder / name), str(folder / f"by_beam_{name}")) for name in ROWS]


def test_the_output_is_that_of_a_local_job_byte_for_byte(prefix, files, tmp_path):
    reads, predictor = reader(trained.load(prefix, Given())), load(prefix)
    beam.predict(files, reads, functools.partial(load, prefix), RUNNER)
    for pair in files:
        stream.predict(FilePair(pair.input, str(tmp_path / "local.tsv")), reads, predictor, {})
        with open(pair.output, "rb") as file:
            assert file.read() == (tmp_path / "local.tsv").read_bytes()
    predictor.close()


def test_nothing_but_the_output_is_left(files, prefix, tmp_path):
    output = tmp_path / "out.tsv"
    beam.predict(
        [FilePair(files[1].input, str(output))], reader(trained.load(prefix, Given())), functools.partial(load, prefix), RUNNER
    )
    assert list(tmp_path.iterdir()) == [output]


def test_a_bad_row_is_one_line(prefix, tmp_path):
    (tmp_path / "bad.tsv").write_text("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\t\tsoup\n")
    pair = FilePair(str(tmp_path / "bad.tsv"), str(tmp_path / "out.tsv"))
    reads = reader(trained.load(prefix, Given()))
    with pytest.raises(BertError) as caught:
        beam.predict([pair], reads, functools.partial(load, prefix), RUNNER)
    assert str(caught.value) == f"{tmp_path}/bad.tsv:2: the text in column '#1 String' is empty"
    assert not (tmp_path / "out.tsv").exists()
