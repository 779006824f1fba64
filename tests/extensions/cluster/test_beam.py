"""Prediction as a pipeline of Apache Beam: on its direct runner, on file systems of its own."""

import errno
import gzip
import itertools
import json
import logging
from unittest import mock

import numpy as np
import pyarrow.parquet
import pytest

from bert_tf.batch import inputs, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import Predictor
from bert_tf.errors import BertError, FlagError, LostPeerError
from bert_tf.extensions.cluster import beam, beam_job, slices, storage
from bert_tf.extensions.cluster.beam_job import Beam
from bert_tf.settings import read_settings
from bert_tf.training.settings import MachineSettings, with_threads
from tests import lines
from tests.batch.runs import write_run
from tests.integration import families

pytestmark = pytest.mark.several_machines

RUNNER = ["--runner=BundleBasedDirectRunner"]  # what DirectRunner comes to where Beam's own Prism is not there
IN_BYTES = ["--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"]
HEADER = "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def rows(count, start=0):
    """Returns lines of MRPC's test split, of several lengths."""
    numbers = range(start, start + count)
    return "".join(f"{row}\t1\t2\ttrain {'red ' * (row % 7)}.\t{'soup' if row % 3 else 'storm'} .\n" for row in numbers)


def run_command(*flags, runner=RUNNER, **values):
    """Runs the command, with Beam where there is a runner."""
    given = [f"--{name}={value}" for name, value in values.items()]
    return lines.run("predict", *given, *flags, *(["--beam", "--", *runner] if runner else []))


def shards(folder, pattern):
    return sorted(folder.glob(pattern))


def lines_of(paths):
    """Returns the header that all have, and the rows of all by their number."""
    texts = [path.read_text() for path in paths]
    headers = {text.splitlines()[0] for text in texts}
    assert len(headers) == 1
    body = [line for text in texts for line in text.splitlines()[1:]]
    return [headers.pop(), *sorted(body, key=lambda line: int(line.split("\t")[0].rpartition("-")[2]))]


def by_beam_and_here(folder, *, output, runner=RUNNER, **given):
    """Returns the shards of a pipeline, and the file of a local job."""
    by_beam, local = folder / f"beam-{output}", folder / f"local-{output.removesuffix('.gz')}"
    assert run_command(runner=runner, **given, output=by_beam) == 0
    assert run_command(runner=None, **given, output=local) == 0
    stem, _, suffix = by_beam.name.partition(".")
    return shards(folder, f"{stem}-*-of-*.{suffix}"), local


@pytest.fixture
def _small_pieces(monkeypatch):
    monkeypatch.setattr(slices, "PIECE", 1 << 12)
    monkeypatch.setattr(inputs, "CHUNK", 16)


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
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_family_is_predicted_as_by_a_local_job(kind, project, tmp_path, monkeypatch):
    """The runner hands slices of seven rows on as bytes; windows and options of one example are in one of them."""
    monkeypatch.setattr(slices, "PIECE", 512)
    monkeypatch.setattr(inputs, "CHUNK", 7)
    record, rows_of = FAMILIES[kind]
    record = {"task_name": "custom", "problem": kind, "kind": kind, "labels": [], **record}
    run = write_run(tmp_path / "run", project, [20], record=record)
    lines = [json.dumps(row) + "\n" for row in rows_of(np.random.default_rng(3), 20)]
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    given = {"checkpoint": run, "input": tmp_path / "rows.jsonl", "output": "out.jsonl"}
    paths, local = by_beam_and_here(tmp_path, runner=IN_BYTES, **given)
    written = [line for path in paths for line in path.read_text().splitlines()]
    assert sorted(written) == sorted(local.read_text().splitlines())
    assert len(written) == 20


def test_files_that_cannot_be_cut_come_to_the_same(run, tmp_path):
    csv = "sentence1,sentence2\n" + "".join(f'"rain\n{row}",soup\n' for row in range(30))
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(csv.encode()))
    paths, local = by_beam_and_here(tmp_path, checkpoint=run, input=tmp_path / "in.csv.gz", output="out.tsv.gz")
    assert b"".join(gzip.decompress(path.read_bytes()) for path in paths) == local.read_bytes()


@pytest.mark.usefixtures("_small_pieces")
def test_rows_are_those_of_a_local_job_though_bundles_fail_in_the_middle(run, tmp_path, monkeypatch):
    (tmp_path / "in.tsv").write_text(HEADER + rows(300))
    plain, calls = Predictor.lines, itertools.count()

    def failing(self, *args):
        if next(calls) in (3, 8):
            raise RuntimeError("the worker is gone")
        return plain(self, *args)

    monkeypatch.setattr(Predictor, "lines", failing)
    paths, local = by_beam_and_here(tmp_path, checkpoint=run, input=tmp_path / "in.tsv", output="out.tsv")
    assert next(calls) > 2 * (300 // 16) + 2
    assert lines_of(paths) == local.read_text().splitlines()
    assert len(list(tmp_path.iterdir())) == len(paths) + 3  # the input, and file and notes of the local job


@pytest.mark.slow
def test_processes_of_a_runner_write_what_one_process_writes(run, tmp_path):
    """Slices of 1 MB of some 20,000 rows; what the operating system decides is which process computes which."""
    (tmp_path / "in.tsv").write_text(HEADER + rows(60_000))
    processes = ["--runner=DirectRunner", "--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    given = {"checkpoint": run, "input": tmp_path / "in.tsv", "output": "out.tsv"}
    paths, local = by_beam_and_here(tmp_path, runner=processes, **given)
    assert lines_of(paths) == local.read_text().splitlines()


def test_a_file_system_that_does_not_answer_is_one_line(run, memory, capsys, monkeypatch):
    silent = mock.Mock(side_effect=TimeoutError("the bucket does not answer\nTraceback of 200 lines"))
    monkeypatch.setattr(memory.MemoryFiles, "_list", silent)
    assert run_command(checkpoint=run, input="memory://in/*", output="memory://out") == 2
    error = "memory://in/*: the file system does not answer: the bucket does not answer"
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {error}"


@pytest.mark.usefixtures("_no_local_names")
def test_model_input_and_output_may_lie_on_another_file_system(memory, stored_run, caplog):
    caplog.set_level(logging.INFO)
    memory.put("memory://data/a.tsv", (HEADER + rows(5)).encode())
    memory.put("memory://data/b.tsv", (HEADER + rows(4, 5)).encode())
    assert run_command(checkpoint=stored_run, input="memory://data/*.tsv", output="memory://out/p.jsonl") == 0
    written = [name for name in memory.names() if name.startswith("memory://out/")]
    assert written
    assert all(name.startswith("memory://out/p-") and name.endswith(".jsonl") for name in written)
    ids = [json.loads(line)["id"] for name in written for line in memory.get(name).splitlines()]
    assert sorted(ids) == [*(f"a.tsv:test-{n}" for n in range(1, 6)), *(f"b.tsv:test-{n}" for n in range(1, 5))]
    assert caplog.text.count("copying to this machine") == 1
    assert loading.load(storage.checkpoint(stored_run), ModelOverrides()).record["decision"]["temperatures"] == (2.5,)


@pytest.mark.usefixtures("_small_pieces")
def test_rows_that_cannot_be_used_are_counted_and_named(run, tmp_path, caplog):
    good = rows(200).splitlines(keepends=True)
    (tmp_path / "in").mkdir()  # a folder stands for its files
    (tmp_path / "in" / "1.tsv").write_text(HEADER + "".join([*good[:20], "20\tshort\n", *good[20:], "221\n"]))
    flags = {"checkpoint": run, "input": f"{tmp_path}/in/", "output": tmp_path / "out.tsv"}
    assert run_command("--skip_bad_rows", **flags) == 0
    assert len(lines_of(shards(tmp_path, "out-*.tsv"))) == 1 + 200
    (left_out,) = shards(tmp_path, "out.tsv.left-out-*.jsonl")
    problems = sorted(json.loads(line)["problem"] for line in left_out.read_text().splitlines())
    assert [problem.partition(": ")[0] for problem in problems] == [f"{tmp_path}/in/1.tsv:203", f"{tmp_path}/in/1.tsv:22"]
    assert "rows left out, since they cannot be used: 2" in caplog.text


def test_an_input_without_rows_is_a_shard_with_a_header_whatever_shards_another_output_has(run, tmp_path):
    (tmp_path / "in.tsv").write_text(HEADER)
    (tmp_path / "out-of-date-00000-of-00001.tsv").touch()
    assert run_command(checkpoint=run, input=tmp_path / "in.tsv", output=tmp_path / "out.tsv") == 0
    (path,) = shards(tmp_path, "out-0*")
    assert path.read_text() == "id\tlabel\tprobability_0\tprobability_1\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input": "{0}/no-such-*.tsv"}, "{0}/no-such-*.tsv: no such file, or no match for the pattern"),
        ({"input": "{0}/none.tsv"}, "{0}/none.tsv: no such file"),
        ({"input": "nowhere://x.tsv"}, "nowhere://x.tsv: Apache Beam knows no file system nowhere"),
        ({"checkpoint": "nowhere://run"}, "nowhere://run.index: Apache Beam knows no file system nowhere"),
        ({"checkpoint": "memory://run"}, "memory://run: no checkpoint or run of this name"),
        ({"output": "{0}/"}, "{0}/: is a folder; name a file, after which shards are named"),
        *(
            ({"output": f"{{0}}/{name}.tsv"}, "{0}/" + f"{name}.tsv: Apache Beam reads *, ? and [")
            for name in ("[a]", "a?", "*")
        ),
        ({"output": "{0}/in.tsv/out.tsv"}, "{0}/in.tsv/out: cannot write: "),
        ({"output": "{0}/earlier.tsv"}, "{0}/earlier-00000-of-00009.tsv: an earlier job has written"),
        ({"input": "{0}/bad.tsv"}, "{0}/bad.tsv:2: 4 cells, expected 5; cells are separated by tabs"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_what_cannot_be_read_or_written_is_one_line_and_leaves_nothing(run, tmp_path, capsys, flags, message):
    (tmp_path / "in.tsv").write_text(HEADER + rows(1))
    (tmp_path / "bad.tsv").write_text(HEADER + "0\t1\t2\tsoup\n")
    (tmp_path / "earlier-00000-of-00009.tsv").touch()
    before = sorted(tmp_path.iterdir())
    usual = {"checkpoint": str(run), "input": "{0}/in.tsv", "output": "{0}/out.tsv"}
    assert run_command(**{name: value.format(tmp_path) for name, value in {**usual, **flags}.items()}) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("I")]
    assert said[-1].startswith(f"error: {message.format(tmp_path)}")
    assert "Traceback" not in "".join(said)
    assert [path for path in sorted(tmp_path.iterdir()) if not path.name.startswith("bert_tf-")] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runnr=FlinkRunner"], "--beam: Apache Beam has no option --runnr"),
        ([*RUNNER, "--parallel=2"], "--beam: Apache Beam has no option --parallel"),
        ([*RUNNER, "--direct_num_workers=many"], "--beam: argument --direct_num_workers: invalid int value: 'many'"),
    ],
)
def test_arguments_that_beam_cannot_use_are_one_line(arguments, message, capfd):
    with pytest.raises(FlagError) as caught:
        beam.pipeline_options(arguments)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "server", ["--job_endpoint=127.0.0.1:1", "--flink_master=http://127.0.0.1:1", "--spark_master_url=spark://127.0.0.1:1"]
)
def test_a_cluster_that_does_not_answer_is_one_line(server):
    with pytest.raises(FlagError, match=f"^--beam: {server}: no answer: Connection refused$"):
        beam.transfer([], None, None, ["--runner=PortableRunner", server])


@pytest.mark.parametrize(
    ("error", "cause", "kind", "message"),
    [
        (
            RuntimeError("no jar\nat any place"),
            ConnectionError("refused"),
            LostPeerError,
            "cannot be reached, or it refuses: no jar",
        ),
        (OSError(errno.ENOSPC, "disk full"), None, BertError, "cannot be reached, or it refuses: disk full; free some.*"),
        (ValueError("Unknown environment type: X"), None, FlagError, "Unknown environment type: X"),
    ],
)
def test_what_libraries_say_of_a_cluster_is_one_line(error, cause, kind, message):
    options = beam.pipeline_options(["--runner=FlinkRunner"])
    with pytest.raises(BertError, match=f"^--beam: FlinkRunner: {message}$") as caught:  # noqa: SIM117
        with beam._readable_errors(options):
            raise error from cause
    assert type(caught.value) is kind


def test_of_a_traceback_that_a_server_hands_on_one_line_is_shown(caplog):
    with beam._said_in_one_line():
        logging.error("Traceback:\n  in f\nRuntimeError: bert_tf.errors.DataError: a.tsv:2: 4 cells [while running 'x']\n\n")
        logging.error("Traceback:\n  in f\nKeyError: 'a'\n")
    assert [record.getMessage() for record in caplog.records] == ["a.tsv:2: 4 cells", "KeyError: 'a'"]


def test_vectors_go_to_shards_that_are_whole_files(run, tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "PIECE", 64)
    monkeypatch.setattr(inputs, "CHUNK", 4)
    (tmp_path / "in.txt").write_text("".join(f"the storm {'red ' * (row % 5)}\n" for row in range(30)))
    flags = [f"--checkpoint={run}", f"--input={tmp_path / 'in.txt'}", "--skip_bad_rows"]
    assert lines.run("encode", *flags, f"--output={tmp_path / 'local.npz'}") == 0
    expected = vectors_of(tmp_path / "local.npz")
    for name in ("v.npz", "v.parquet", "v.jsonl.gz"):
        assert lines.run("encode", *flags, f"--output={tmp_path / name}", "--beam", "--", *RUNNER) == 0
        (shard,) = shards(tmp_path, f"v-*-of-*{name[1:]}")
        vectors = vectors_of(shard)
        assert vectors.shape == expected.shape
        np.testing.assert_array_equal(np.sort(vectors, axis=0), np.sort(expected, axis=0))


@pytest.mark.usefixtures("_small_pieces")
def test_metrics_and_intervals_are_those_of_a_local_job(project, memory, stored_run, run, tmp_path):
    dev = (project.data_dir / "dev.tsv").read_text().splitlines(keepends=True)
    whole, cut = [dev[0], *dev[1:] * 20], len(dev[1:]) * 7
    (tmp_path / "dev.tsv").write_text("".join(whole))
    memory.put("memory://dev/1.tsv", "".join(whole[: cut + 1]).encode())
    memory.put("memory://dev/2.tsv", "".join([dev[0], *whole[cut + 1 :]]).encode())
    local = measured(tmp_path / "local", run, tmp_path / "dev.tsv")
    measured_there = measured(tmp_path / "beam", stored_run, "memory://dev/*.tsv", "--beam", "--", *RUNNER)
    for name in ("step", "metrics", "intervals_95", "examples", "collapsed"):
        assert measured_there[name] == local[name]
    assert measured_there["loss"] == pytest.approx(local["loss"], rel=1e-6)
    assert not [name for name in memory.names() if "parts" in name]
    assert sorted(path.name for path in (tmp_path / "beam").iterdir()) == ["results.json", "results.tsv"]


def test_workers_elsewhere_need_a_place_for_what_is_gathered():
    elsewhere = Beam(["--runner=FlinkRunner"], dict)
    with pytest.raises(FlagError, match="^--beam: add --temp_location=FOLDER after --"):
        beam_job.gathering_place("out", elsewhere)
    assert beam_job.gathering_place("out", elsewhere._replace(arguments=["--temp_location=gs://b/t"])) == "gs://b/t"


def measured(folder, checkpoint, file, *flags):
    """Returns the row of an evaluation."""
    job = folder.with_suffix(".yaml")
    job.write_text(f"checkpoints: {checkpoint}\ntasks: {{name: MRPC, file: '{file}'}}\noutput_dir: {folder}\n")
    assert lines.run("evaluate", f"--job={job}", *flags) == 0
    (row,) = json.loads((folder / "results.json").read_text())["rows"]
    return row


def vectors_of(path):
    if path.suffix == ".npz":
        return np.load(path)["vectors"]
    if path.suffix == ".parquet":
        return np.stack(pyarrow.parquet.read_table(path).column("vector").to_numpy())
    return np.array([json.loads(line)["vector"] for line in gzip.decompress(path.read_bytes()).splitlines()], np.float32)


def test_options_of_a_runner(monkeypatch):
    elsewhere = beam.pipeline_options(["--runner=FlinkRunner", "--of_the_server=2"])  # which may know it
    assert elsewhere.get_all_options()["runner"] == "FlinkRunner"
    with pytest.raises(FlagError, match="^--beam: Unexpected pipeline runner: NoSuchRunner"):
        beam.transfer([], None, None, ["--runner=NoSuchRunner"])
    monkeypatch.setattr("bert_tf.runtime.cgroup.granted_cpus", lambda: 8)
    processes = ["--runner=DirectRunner", "--direct_running_mode=multi_processing"]
    assert beam.threads([*processes, "--direct_num_workers=2"]) == 4
    assert beam.threads([*processes, "--direct_num_workers=0"]) == 1  # as many as cores
    assert beam.threads(["--runner=DirectRunner"]) is None
    settings = with_threads(read_settings(MachineSettings, {"intra_op_threads": 3}), 2).devices
    assert (settings.intra_op_threads, settings.inter_op_threads) == (3, 2)  # what is given stays
