"""Words for [MASK]: the same from the library, the command, files and pipes."""

import gzip
import json

import numpy as np
import pytest

import bert_tf
from bert_tf.batch import inputs, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import ClosedError
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.extensions.fill_mask.filler import WordFiller
from tests import lines, pretrained, reference
from tests.batch.runs import inference
from tests.tiny import TOKENS

TEXTS = ["rain [MASK] over the [MASK].", "[MASK] came", "a red [MASK], a blue one"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return pretrained.write(tmp_path_factory.mktemp("pretrained") / "model")


@pytest.fixture(scope="module")
def filler(model):
    encoder = loading.load_encoder(str(model / "bert_model.ckpt"), ModelOverrides(max_seq_length=24))
    with WordFiller(encoder, inference()) as opened:
        yield opened


def command(capsys, *argv) -> tuple[int, str, str]:
    status = lines.run("fill-mask", *map(str, argv), "--verbosity=-1")
    return status, *capsys.readouterr()


def test_words_are_those_of_the_reference(filler, model):
    config = BertConfig.from_json_file(model / "bert_config.json")
    ids = np.array([[TOKENS.index(piece) for piece in "[CLS] the old [MASK] went near [SEP]".split()]])
    batch = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    places = {"masked_lm_positions": np.array([[3]]), "slots": np.array([1])}
    (log_probabilities,), _ = reference.pretraining({**batch, **places}, pretrained.weights(config), config)
    ((place,),) = filler.fill_mask(["the old [MASK] went near"])
    best = np.argsort(-log_probabilities)[:5]
    assert (place.start, place.end) == (8, 14)
    assert [word.piece for word in place.words] == [TOKENS[number] for number in best]
    np.testing.assert_allclose([word.probability for word in place.words], np.exp(log_probabilities[best]), atol=1e-6)


def test_each_text_has_its_places(filler):
    assert filler.fill_mask([]) == []
    ((continued,),) = filler.fill_mask(["rain[MASK]"], top=10)
    assert all(word.continues_word == word.piece.startswith("##") for word in continued.words)
    filled = filler.fill_mask(TEXTS, top=3)
    assert [[(place.start, place.end) for place in of_text] for of_text in filled] == [[(5, 11), (21, 27)], [(0, 6)], [(6, 12)]]
    assert {len(place.words) for of_text in filled for place in of_text} == {3}
    for place in (place for of_text in filled for place in of_text):
        assert [word.probability for word in place.words] == sorted((word.probability for word in place.words), reverse=True)


def test_a_text_has_the_same_words_alone(filler):
    for text, places in zip(TEXTS, filler.fill_mask(TEXTS)):
        ((first, *_),) = filler.fill_mask([text])
        assert [word.piece for word in first.words] == [word.piece for word in places[0].words]
        np.testing.assert_allclose([w.probability for w in first.words], [w.probability for w in places[0].words], atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "top", "error", "message"),
    [
        ("one [MASK]", 5, DataError, "texts: is one str, not rows"),
        (["a [MASK]", "rain"], 5, DataError, r"texts: row 1: has no \[MASK\]"),
        ([("a [MASK]", "rain"), "[MASK]"], 5, DataError, "texts: row 0: is a pair; give one text"),
        (["a [MASK]"], 0, FlagError, "--top=0: expected at least 1"),
        (["a [MASK]"], 11, FlagError, "--top=11: not a number up to 10"),
    ],
)
def test_what_cannot_be_filled_in(filler, texts, top, error, message):
    with pytest.raises(error, match=message):
        filler.fill_mask(texts, top=top)


def test_a_model_of_pretraining_says_what_predicts_and_evaluates(tmp_path):
    with bert_tf.load(pretrained.write_run(tmp_path / "run")) as run:
        for call, *rows in ((run.predict, ["a"]), (run.evaluate, [("a", "0")]), (run.evaluate,), (run.evaluate, "test")):
            with pytest.raises(DataError, match="^Pretraining: .*fill-mask predicts them, .* pretrain --do_eval measures them"):
                call(*rows)


def test_a_model_of_pretraining_fills_in_words_until_it_is_closed(tmp_path, filler, run):
    folder = pretrained.write_run(tmp_path / "run")
    with bert_tf.load(folder) as model:
        by_text = model.fill_mask(TEXTS, top=2)
    assert [len(place.words) for of_text in by_text for place in of_text] == [2] * 4
    assert by_text[1][0].words[0].piece == filler.fill_mask(TEXTS)[1][0].words[0].piece
    with pytest.raises(ClosedError, match="was closed"):
        model.fill_mask(TEXTS)
    files = {"input": tmp_path / "rows.tsv", "output": tmp_path / "predictions.tsv"}
    with pytest.raises(CheckpointError, match=r"run/bert_model.ckpt: masked words were learned, no labels; .*fill-mask"):
        bert_tf.predict_files(checkpoint=folder, **files)
    with bert_tf.load(run) as other, pytest.raises(CheckpointError, match="it has no head for masked words"):
        other.fill_mask(TEXTS)
    with pytest.raises(CheckpointError, match="none: no checkpoint of this name"):
        bert_tf.fill_mask(tmp_path / "none", text="[MASK]")


def test_a_run_is_read_at_the_length_of_its_training(tmp_path):
    for folder, length in ((pretrained.write_run(tmp_path / "run"), 24), (pretrained.write(tmp_path / "model"), 64)):
        assert bert_tf.word_filler(folder).trained.max_seq_length == length


def test_the_command_prints_the_words_of_a_text(capsys, model, filler):
    status, out, _ = command(capsys, model, f"--text={TEXTS[0]}", "--top=2", "--max_seq_length=24")
    expected = []
    for place in filler.fill_mask(TEXTS[:1], top=2)[0]:
        expected.append(f"characters {place.start} to {place.end}")
        expected += [f"  {word.probability:.4f}  {word.piece}" for word in place.words]
    assert (status, out.splitlines()) == (0, expected)


def test_files_have_a_line_of_json_for_each_text(capsys, model, tmp_path, monkeypatch, filler):
    monkeypatch.setattr(inputs, "CHUNK", 2)
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    output = tmp_path / "out.jsonl.gz"
    assert command(capsys, model, f"--input={tmp_path / 'in.txt'}", f"--output={output}", "--top=1")[0] == 0
    rows = [json.loads(line) for line in gzip.decompress(output.read_bytes()).splitlines()]
    assert [(row["id"], row["text"]) for row in rows] == [(str(n), text) for n, text in enumerate(TEXTS, 1)]
    for row, places in zip(rows, filler.fill_mask(TEXTS, top=1)):
        masks = [(mask["start"], mask["end"], mask["words"][0]["piece"]) for mask in row["masks"]]
        assert masks == [(place.start, place.end, place.words[0].piece) for place in places]


def test_tables_and_rows_that_are_left_out(capsys, model, tmp_path):
    (tmp_path / "in.csv").write_text('id,text\nx,"a [MASK], then"\ny,nothing\nz,[MASK]\n')
    columns = ["--text_a=text", "--id_column=id", "--skip_bad_rows"]
    status, _, err = command(capsys, model, f"--input={tmp_path / 'in.csv'}", f"--output={tmp_path / 'out.jsonl'}", *columns)
    assert status == 0, err
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["x", "z"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text=rain"], "--text: has no [MASK]; write [MASK] where a word is to be filled in"),
        (["--text=[MASK]", "--max_seq_length=2"], "--max_seq_length=2"),
        (["--input=in.txt", "--output=out.tsv"], "--output=out.tsv: words are written as JSON lines"),
        (["--input=in.txt", "--output=out.jsonl"], "in.txt: row 2: has no [MASK]"),
        (["--text=[MASK]", "--skip_bad_rows"], "--skip_bad_rows: is for the rows of --input; leave it out"),
        (["--text=[MASK]", "--id_column=id"], "--id_column: is for the rows of --input; leave it out"),
        (["--input=pairs.txt", "--output=out.jsonl"], "pairs.txt: row 1: is a pair; give one text"),
    ],
)
def test_a_line_for_what_cannot_be_done(capsys, model, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("[MASK]\nrain\n")
    (tmp_path / "pairs.txt").write_text("[MASK] ||| rain\n")
    status, out, err = command(capsys, model, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_a_model_without_a_head_or_with_one_of_another_size_is_refused(capsys, project, tmp_path):
    status, out, err = command(capsys, project.init_checkpoint, "--text=[MASK]")
    assert (status, out) == (2, "")
    assert "no cls/predictions/output_bias: it has no head for masked words" in err
    folder = pretrained.write(tmp_path / "other", **{"cls/predictions/output_bias": np.zeros(7, np.float32)})
    with pytest.raises(CheckpointError, match=r"cls/predictions/output_bias.*7.*do configuration and checkpoint belong"):
        bert_tf.fill_mask(folder, text="[MASK]")
