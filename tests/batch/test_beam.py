"""The same prediction as a pipeline of Apache Beam, on its direct runner."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from bert_tf.batch import beam, inputs, stream, trained
from bert_tf.batch.job import Columns, FilePair, Given
from bert_tf.batch.prediction import Predictor
from bert_tf.errors import BertError, FlagError
from tests.batch.runs import inference, write_run
from tests.integration import families

RUNNER = ["--runner=BundleBasedDirectRunner"]  # what DirectRunner comes to where Beam's own Prism is not there
IN_BYTES = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
ROWS = {"long.csv.gz": 2 * inputs.CHUNK + 5, "short.tsv": 3, "empty.jsonl": 0}  # by output


def load(prefix: str) -> Predictor:
    """Makes the predictor of a worker."""
    model = trained.load(prefix, Given())
    reads = reader(model)
    return Predictor(model, reads.family, inference(batch_size=None))


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
        (folder / f"{name}.in").write_text("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(lines))
    return [FilePair(str(folder / f"{name}.in"), str(folder / name)) for name in ROWS]


def test_the_output_is_that_of_a_local_job_byte_for_byte(prefix, files, tmp_path):
    reads, predictor = reader(trained.load(prefix, Given())), load(prefix)
    beam.predict(files, reads, functools.partial(load, prefix), RUNNER)
    for pair in files:
        local = tmp_path / Path(pair.output).name
        stream.predict(FilePair(pair.input, str(local)), reads, predictor, {})
        assert Path(pair.output).read_bytes() == local.read_bytes()
    predictor.close()


def asked(random, count):
    """Contexts of up to 60 words, of which a window holds 19."""
    return [families.question(random, f"q{n}", int(words)) for n, words in enumerate(random.integers(1, 60, count))]


def tagged(random, count):
    return [{"tokens": families.tagged(random, length)[0]} for length in random.integers(1, 60, count)]


FAMILIES = {
    "span": ({"doc_stride": 8}, asked),
    "tags": ({"labels": ["O", "B-X", "I-X"]}, tagged),
    "choice": ({}, families.choices),
    "similarity": ({"highest_score": 5.0}, families.pairs),
    "contrastive": ({"temperature": 0.05}, families.pairs),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_family_is_predicted_as_by_a_local_job(kind, project, tmp_path, monkeypatch):
    """The runner hands chunks of seven on as bytes; windows and options of one example are in one of them."""
    record, rows = FAMILIES[kind]
    record = {"task_name": "custom", "problem": kind, "kind": kind, "labels": [], **record}
    prefix = str(write_run(tmp_path / "run", project, [20], record=record) / "model.ckpt-20")
    monkeypatch.setattr(inputs, "CHUNK", 7)
    source, by_beam, local = (str(tmp_path / name) for name in ("rows.jsonl", "beam.jsonl", "local.jsonl"))
    Path(source).write_text("".join(json.dumps(row) + "\n" for row in rows(np.random.default_rng(3), 20)))
    reads = reader(trained.load(prefix, Given()))
    beam.predict([FilePair(source, by_beam)], reads, functools.partial(load, prefix), [IN_BYTES])
    predictor = load(prefix)
    stream.predict(FilePair(source, local), reads, predictor, {})
    predictor.close()
    assert Path(by_beam).read_bytes() == Path(local).read_bytes()
    assert Path(local).read_bytes().count(b"\n") == 20


def test_nothing_but_the_output_is_left(files, prefix, tmp_path):
    output = tmp_path / "out.tsv"
    for beside in ("out.tsv.part", "out.tsv.job.json"):  # of a local job, whose output is replaced
        (tmp_path / beside).touch()
    beam.predict(
        [FilePair(files[1].input, str(output))], reader(trained.load(prefix, Given())), functools.partial(load, prefix), RUNNER
    )
    assert list(tmp_path.iterdir()) == [output]


def test_a_bad_row_is_one_line(prefix, tmp_path, caplog):
    (tmp_path / "bad.tsv").write_text("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tsoup\n")
    pair = FilePair(str(tmp_path / "bad.tsv"), str(tmp_path / "out.tsv"))
    reads = reader(trained.load(prefix, Given()))
    with pytest.raises(BertError) as caught:
        beam.predict([pair], reads, functools.partial(load, prefix), RUNNER)
    assert str(caught.value) == f"{tmp_path}/bad.tsv:2: 4 cells where 5 are expected; cells are divided by tabs"
    assert not (tmp_path / "out.tsv").exists()
    assert "Traceback" not in caplog.text


def test_a_step_that_the_runner_does_twice_comes_to_the_same(tmp_path):
    folder = beam._folder(str(tmp_path / "out.tsv"))
    folder.mkdir()
    parts = [beam.Part(number, str(folder / f"{number}")) for number in (1, 0)]
    for part in parts:
        (folder / str(part.number)).write_text(f"{part.number}\n")
    for _ in range(2):
        beam._put_together(str(tmp_path / "out.tsv"), parts)
        assert (tmp_path / "out.tsv").read_text() == "0\n1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runner=NoSuchRunner"], "--beam: Unexpected pipeline runner: NoSuchRunner"),
        (["--runnr=FlinkRunner"], "--beam: Apache Beam has no option --runnr"),
        ([*RUNNER, "--parallel=2"], "--beam: Apache Beam has no option --parallel"),
        ([*RUNNER, "--direct_num_workers=many"], "--beam: argument --direct_num_workers: invalid int value: 'many'"),
    ],
)
def test_arguments_that_beam_cannot_use_are_one_line(arguments, message, capfd):
    with pytest.raises(FlagError) as caught:
        beam.predict([], None, None, arguments)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_server_may_know_options_that_beam_does_not():
    assert beam._options(["--runner=FlinkRunner", "--of_the_server=2"]).get_all_options()["runner"] == "FlinkRunner"
