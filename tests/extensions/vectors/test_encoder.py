"""Vectors in a program's hands, files of them, search, and zero-shot evaluation: the same from the library and the commands."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.__main__ import main
from bert_tf.batch import inputs, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import ClosedError
from bert_tf.checkpoints.huggingface import converted
from bert_tf.errors import BertError, CheckpointError, DataError, FlagError
from bert_tf.extensions.serve.settings import configured
from bert_tf.extensions.similarity.zero_shot import ZeroShot
from bert_tf.extensions.vectors.call import Encode
from bert_tf.extensions.vectors.options import VectorOptions
from bert_tf.extensions.vectors.text_encoder import Encoder
from bert_tf.head_spec import CLASSIFICATION, SIMILARITY
from tests import huggingface, lines
from tests.batch.runs import inference
from tests.tasks.refusals import refusal

TEXTS = ["rain came", "the old wind went over", "soup", "bread and salt near the pear"]
LENGTH, WIDTH = 24, 8


@pytest.fixture(scope="module")
def encoder(project):
    model = loading.load_encoder(project.init_checkpoint, ModelOverrides(max_seq_length=LENGTH))
    with Encoder(model, inference()) as opened:
        yield opened


@pytest.fixture(scope="module")
def index(tmp_path_factory, project):
    """Folder of the texts and of their vectors in all forms that can be searched; not to be changed."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    settings = {"checkpoint": project.init_checkpoint, "max_seq_length": LENGTH, "layers": "0", "pooling": "max"}
    for kind in ("npy", "npz", "parquet"):
        bert_tf.encode_file(input=folder / "texts.txt", output=folder / f"index.{kind}", **settings)
    return folder


def test_a_vector_for_each_text(encoder):
    assert encoder.encode([]).shape == (0, WIDTH)
    assert encoder.encode([], tokens=True) == []
    assert [len(tokens) for tokens in encoder.encode([("rain", "wind"), ("rain",)], tokens=True)] == [5, 3]
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((4, WIDTH), np.float32)
    np.testing.assert_allclose(vectors, [encoder.encode([text])[0] for text in TEXTS], atol=1e-5)


def test_options_change_what_a_vector_is(encoder):
    plain = encoder.encode(TEXTS)
    units = encoder.encode(TEXTS, normalize=True)
    np.testing.assert_allclose(units, plain / np.linalg.norm(plain, axis=1, keepdims=True), rtol=1e-5)
    of_tokens = encoder.encode(TEXTS, tokens=True)
    assert [len(tokens) for tokens in of_tokens] == [4, 7, 3, 8]
    np.testing.assert_allclose(plain, [tokens.mean(axis=0) for tokens in of_tokens], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS, pooling="max"), [one.max(axis=0) for one in of_tokens], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS, pooling="cls"), [one[0] for one in of_tokens], atol=1e-6)


@pytest.mark.parametrize(("given", "expected"), [(None, "cls"), ("max", "max")])
def test_a_model_has_the_pooling_that_it_was_trained_with(encoder, given, expected):
    trained = dataclasses.replace(encoder.trained, record={"pooling": "cls"})
    with Encoder(trained, inference(), weights_of=encoder) as other:
        np.testing.assert_array_equal(other.encode(TEXTS, pooling=given), encoder.encode(TEXTS, pooling=expected))


def test_modules_that_are_not_computed_are_refused_unless_a_pooling_is_named(encoder):
    trained = dataclasses.replace(encoder.trained, record={"pooling": "Dense"})
    with pytest.raises(FlagError, match="the model's pooling is Dense, which is unsupported"):
        VectorOptions().of_model(trained)
    assert VectorOptions("cls").of_model(trained).pooling == "cls"


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ("one text", {}, DataError, "texts: is one str, not rows"),
        ([3], {}, DataError, "row 0: is 3"),
        (TEXTS, {"pooling": "first"}, FlagError, "unknown pooling 'first'"),
        (TEXTS, {"layers": 5}, FlagError, "no layer 5"),
        (TEXTS, {"pooling": "cls", "tokens": True}, FlagError, "--pooling=cls: each token has a vector of its own"),
    ],
)
def test_what_cannot_be_encoded(encoder, texts, options, error, message):
    with pytest.raises(error, match=message):
        encoder.encode(texts, **options)


def test_a_trained_model_encodes_with_its_encoder(run, project):
    with bert_tf.load(run) as model:
        assert model.encode(TEXTS, normalize=True).shape == (4, WIDTH)
    with pytest.raises(ClosedError, match="was closed"):
        model.encode(TEXTS)
    with pytest.raises(CheckpointError, match="pretrained model without a task head; train it first, or take its vectors"):
        bert_tf.load(project.init_checkpoint, max_seq_length=LENGTH)


def test_an_index_names_the_model_that_made_it_and_is_gone(tmp_path, project):
    model = shutil.copytree(Path(project.init_checkpoint).parent, tmp_path / "model")
    (tmp_path / "texts.txt").write_text("rain\n")
    bert_tf.encode_file(input=tmp_path / "texts.txt", output=tmp_path / "v.npz", checkpoint=model, max_seq_length=LENGTH)
    shutil.rmtree(model)
    with pytest.raises(CheckpointError, match="v.npz: the model that made it: .*model.*; name it with --checkpoint"):
        bert_tf.search(index=tmp_path / "v.npz", query="rain")


def test_of_no_queries_nothing_is_found(index):
    assert bert_tf.search(index=index / "index.npz", queries=[]) == []


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_a_text_is_nearest_to_itself(index, kind):
    query = TEXTS[1]
    (result,) = bert_tf.search(
        index=index / f"index.{kind}", query=query, top=2**31 - 1, texts=index / "texts.txt" if kind == "npy" else None
    )
    best = result.hits[0]
    assert (best.row, best.id, best.text) == (TEXTS.index(query), str(TEXTS.index(query) + 1), query)
    assert best.score == pytest.approx(1.0)
    assert len(result.hits) == 4
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


def test_a_query_is_the_pair_that_the_same_line_of_a_file_is(index, tmp_path):
    line, vectors = f"{TEXTS[0]} ||| {TEXTS[1]}", index / "index.npz"
    (tmp_path / "queries.txt").write_text(f"{line}\n")
    (asked,) = bert_tf.search(index=vectors, query=line)
    (of_file,) = bert_tf.search(index=vectors, queries=str(tmp_path / "queries.txt"))
    assert asked.query.texts == of_file.query.texts == (TEXTS[0], TEXTS[1])
    assert asked.hits == of_file.hits
    (in_memory,) = bert_tf.search(index=vectors, queries=[line])
    assert in_memory.query.texts == (line,)
    with pytest.raises(DataError, match="row 0: a text is empty"):
        bert_tf.search(index=vectors, query=f"{TEXTS[0]} ||| ")


def encode(project, *flags):
    return lines.run("encode", f"--checkpoint={project.init_checkpoint}", f"--max_seq_length={LENGTH}", *flags)


def test_the_commands_do_the_same_in_any_folder(index, tmp_path, project, capsys, monkeypatch):
    texts, vectors = index / "texts.txt", tmp_path / "out.npz"
    monkeypatch.chdir(Path(project.init_checkpoint).parent)
    there = dataclasses.replace(project, init_checkpoint=Path(project.init_checkpoint).name)
    assert encode(there, f"--input={texts}", f"--output={vectors}", "--layers=0", "--pooling=max") == 0
    assert vectors.read_bytes() == (index / "index.npz").read_bytes()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["bert_tf", "search", f"--index={vectors}", f"--queries={texts}", "--top=1"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows == [[str(n), "1.0000", str(n), text] for n, text in enumerate(TEXTS, 1)]
    assert main(["bert_tf", "search", f"--index={vectors}", "--query=soup", "--top=1", "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["hits"]
    assert (hit["text"], hit["row"]) == ("soup", 2)


BEAM = ["--beam", "--", "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"]


@pytest.mark.parametrize("beam", [[], pytest.param(BEAM, marks=pytest.mark.several_machines)])
@pytest.mark.parametrize("form", ["npz", "jsonl"])
def test_files_of_a_pattern_are_encoded_as_each_by_itself(form, beam, tmp_path, project, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", 3)
    for name, texts in (("a", TEXTS), ("b", TEXTS[:2])):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
        assert encode(project, f"--input={tmp_path / name}.txt", f"--output={tmp_path / name}.{form}") == 0
    several = [f"--input={tmp_path}/*.txt", f"--output={tmp_path / 'all'}/", f"--output_format={form}"]
    assert encode(project, *several, *beam) == 0
    shard = "-00000-of-00001" if beam else ""
    for name in ("a", "b"):
        assert (tmp_path / "all" / f"{name}{shard}.{form}").read_bytes() == (tmp_path / f"{name}.{form}").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.npz", "no.npz: no such file"),
        ("a.jsonl", "a.jsonl: is not an index: encode the texts into .npz, .parquet, .npy"),
        ("narrow.npy", "vectors of 5 numbers"),
        ("index.npz", "was made with a different checkpoint than .*; name it with --checkpoint"),
    ],
)
def test_what_is_no_index_of_the_model_is_named(index, run, tmp_path, name, message):
    np.save(tmp_path / "narrow.npy", np.ones((3, 5), np.float32))
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(BertError, match=message):
        bert_tf.search(index=(index if name == "index.npz" else tmp_path) / name, query="rain", checkpoint=run)


def test_an_empty_file_among_several_is_left_out_with_bad_rows(tmp_path, project, caplog):
    for name, text in {"a": "rain came\n", "b": "\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    model = {"checkpoint": project.init_checkpoint, "max_seq_length": LENGTH}
    wanted = {**model, "output_format": "npz", "output": f"{tmp_path}/all/"}
    for source, skips in (("*", False), ("b", True)):
        with pytest.raises(DataError, match="b.txt: the file is empty"):
            bert_tf.encode_file(**wanted, input=f"{tmp_path}/{source}.txt", skip_bad_rows=skips)
    bert_tf.encode_file(**wanted, input=f"{tmp_path}/*.txt", skip_bad_rows=True)
    assert [path.name for path in (tmp_path / "all").glob("*.npz")] == ["a.npz"]
    assert f"left out: {tmp_path}/b.txt: the file is empty" in caplog.text


def test_ids_do_not_break_the_lines(tmp_path, project, capsys):
    (tmp_path / "in.jsonl").write_text('{"id": "a\\tb\\nc", "text": "rain"}\n')
    assert encode(project, f"--input={tmp_path / 'in.jsonl'}", "--id_column=id", f"--output={tmp_path / 'out.npz'}") == 0
    assert main(["bert_tf", "search", f"--index={tmp_path / 'out.npz'}", "--query=rain"]) == 0
    assert capsys.readouterr().out == "1.0000\ta b c\train\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input=a", "--output=b.vec"], "b.vec: name it .npy"),
        (["--input=a", "--output=-", "--output_format=npz"], "npz has its size at the start or end"),
        (["--input=a.npz", "--output=./a.npz"], "is an input and an output"),
        (["--input=a", "--output=b.jsonl", "--dtype=float16"], "--dtype=float16 is for .npy, .npz and .parquet"),
        (["--input=a", "--output=b.npy", "--tokens"], "npy cannot store where a text begins"),
        *(
            (["--input=a", "--output=b.jsonl", *flags, "--pooling=max"], "--pooling=max: each token has a vector of its own")
            for flags in (["--tokens"], ["--output_format=published"])
        ),
        (["--input=a", "--output=b", "--output_format=published", "--normalize"], "--normalize: --output_format=published has"),
    ],
)
def test_a_line_for_what_cannot_be_encoded(tmp_path, monkeypatch, capsys, project, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "a.npz"):
        (tmp_path / name).write_text("rain")
    assert encode(project, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert not list(tmp_path.glob("b*"))


def test_vectors_of_sentence_transformers_have_its_length_and_what_is_done_there_alone_is_said(tmp_path, caplog):
    folder = huggingface.write_folder(tmp_path / "bge")
    huggingface.write_modules(folder, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "Normalize")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 5, "do_lower_case": true}')
    with bert_tf.encoder(converted(folder, tmp_path / "home") / "bert_model.ckpt") as encoder:
        plain = encoder.encode(TEXTS, normalize=False)
        np.testing.assert_allclose(encoder.encode(TEXTS), plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
        assert encoder.trained.max_seq_length == 5
        np.testing.assert_array_equal(*encoder.encode(["rain", "rain"], tokens=True))
        assert not np.allclose(np.linalg.norm(encoder.encode(["rain"], tokens=True)[0], axis=1), 1)
    assert "sentence-transformers also lower-cases texts (do_lower_case), which is not done here" in caplog.text


def test_zero_shot_says_that_it_takes_the_mean_of_a_model_of_another_pooling(tmp_path, caplog):
    folder = huggingface.write_folder(tmp_path / "bge")
    huggingface.write_modules(folder, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    prefix = converted(folder, tmp_path / "home") / "bert_model.ckpt"
    ZeroShot().load(str(prefix), ModelOverrides())
    assert "the model's pooling is cls, but --zero_shot uses mean pooling" in caplog.text


def test_zero_shot_is_the_correlation_of_cosines_and_scores(tmp_path, project, encoder):
    pairs = [(a, b) for a in TEXTS for b in TEXTS if a < b]
    scores = np.random.default_rng(0).uniform(0, 5, len(pairs))
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    lines = [f"{n}\tx\tx\tx\tx\tx\tx\t{a}\t{b}\t{score}\n" for n, ((a, b), score) in enumerate(zip(pairs, scores))]
    (tmp_path / "dev.tsv").write_text(header + "".join(lines))
    task = {"task_name": "STS-B", "data_dir": tmp_path, "zero_shot": True}
    table = bert_tf.evaluate([project.init_checkpoint], **task, max_seq_length=LENGTH, output_dir=tmp_path / "out")
    first, second = (encoder.encode(side, normalize=True).astype(float) for side in zip(*pairs))
    cosines = (first * second).sum(axis=1)
    (row,) = table.rows
    assert (row.task, row.error) == ("STS-B-zero-shot", None)
    assert row.metrics["pearson"] == pytest.approx(np.corrcoef(cosines, scores)[0, 1], abs=1e-5)
    ranks = [values.argsort().argsort() for values in (cosines, scores)]
    assert row.metrics["spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-5)
    assert row.loss == pytest.approx(np.mean((cosines - scores / 5) ** 2), abs=1e-5)
    lines = [f"{a}\t{b}\t{score}\n" for (a, b), score in zip(pairs, scores)]  # one's own pairs
    (tmp_path / "own.tsv").write_text("text_a\ttext_b\tlabel\n" + "".join(lines))
    own = {"task_name": "custom", "data": tmp_path / "own.tsv", "zero_shot": True, "max_seq_length": LENGTH}
    table = bert_tf.evaluate([project.init_checkpoint], **own, highest_score=5.0, output_dir=tmp_path / "own")
    assert (table.rows[0].metrics, table.rows[0].loss) == (pytest.approx(row.metrics, abs=1e-6), pytest.approx(row.loss))
    (failed,) = bert_tf.evaluate([project.init_checkpoint], **own, output_dir=tmp_path / "small").failed
    assert "is above 1; name the highest of the scale with --highest_score, as 5" in failed.error
    with pytest.raises(FlagError, match="--zero_shot compares cosines with scores; MRPC has none"):
        bert_tf.evaluate([project.init_checkpoint], task_name="MRPC", zero_shot=True)


@pytest.mark.parametrize(
    ("flags", "kind", "offered"),
    [
        ({}, CLASSIFICATION, False),
        ({"encode": True, "pooling": "cls"}, CLASSIFICATION, True),
        ({"pooling": "cls"}, SIMILARITY, True),  # a model of vectors offers them always
        ({"layers": "-2"}, CLASSIFICATION, "--layers: is for the vectors of POST /encode; add --encode"),
    ],
)
def test_a_service_offers_vectors_of_models_of_vectors_and_if_asked_for(flags, kind, offered):
    config = configured("run", **flags)
    if isinstance(offered, str):
        assert offered in refusal(FlagError, Encode().is_offered, kind, config)
    else:
        assert Encode().is_offered(kind, config) is offered
