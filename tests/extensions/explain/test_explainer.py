"""Scores of words: of every kind of model, against NumPy, and as the command prints them."""

import contextlib
import dataclasses
import functools
import json
import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import bert_tf
from bert_tf import config
from bert_tf.batch.session import ClosedError
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError, VocabularyError
from bert_tf.extensions.explain import command, explainer, targets
from bert_tf.extensions.explain.explanation import Explanation
from bert_tf.extensions.explain.words import SPECIAL, TracingTokenizer
from bert_tf.features import sentences
from bert_tf.modeling import custom_gradients
from bert_tf.tokenization import library
from bert_tf.tokenization.tokenizer import tokenizer_of
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import lines, reference
from tests.extensions.serve.runs import KINDS, write
from tests.tiny import TOKENS
from tests.tokenizer_files import byte_level

COMPUTED = ("classification", "span", "tags", "choice", "similarity")  # each with heads and outputs of its own
PAIR = ("Rains came", "the storm over soup.")
FOUND = Explanation("row-0", "<b>", ("a", "<i>"), (2.0, -1.0), (0, 1), "occlusion", 3.0, 1.0, 0.5, 0)


@pytest.fixture(scope="module")
def open_model(tmp_path_factory, project):
    """Returns a function that loads a model of a kind, once."""
    folder = tmp_path_factory.mktemp("explained")
    with contextlib.ExitStack() as opened:
        yield functools.cache(lambda kind: opened.enter_context(bert_tf.load(write(folder / kind, project, kind))))


def logits(model, row):
    """The head's outputs of a row, by the engine that predicts; with its features."""
    features = model.reader.features(model.reader.examples([row]))
    (outputs,) = model.outputs(features).values()
    return outputs, features


@pytest.mark.parametrize("kind", COMPUTED)
def test_scores_of_every_kind_add_up_to_the_change_of_the_output(open_model, kind):
    model, rows = open_model(kind), KINDS[kind][1]
    predicted = model.predict(rows)
    for explanation, prediction in zip(model.explain(rows), predicted):
        change = explanation.output - explanation.baseline
        assert abs(sum(explanation.scores) - change) <= 0.01 * abs(change)
        assert explanation.completeness_error <= 0.01
        assert len(explanation.words) == len(explanation.scores) == len(explanation.segments) > 0
        assert explanation.id == prediction.id
    (occluded,) = model.explain(rows[:1], method="occlusion")
    (integrated,) = model.explain(rows[:1])
    assert (occluded.words, occluded.label) == (integrated.words, integrated.label)
    assert occluded.output == pytest.approx(integrated.output, abs=1e-5)


def first_entity(prediction):
    return next((n for n, tag in enumerate(prediction.label) if tag != "O"), 0)


# A row of each kind, and the explained output by the head's outputs and the prediction.
EXPECTED = {
    "classification": ("rain came", lambda outputs, one: outputs[0, int(one.label)]),
    "choice": (KINDS["choice"][1][0], lambda outputs, _: outputs.max()),
    "tags": ("Rain came.", lambda outputs, one: outputs[1 + first_entity(one)].max()),
    "similarity": (KINDS["similarity"][1][0], lambda _, one: one.cosine),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_the_explained_output_is_that_of_the_prediction(open_model, kind):
    model, (row, expected) = open_model(kind), EXPECTED[kind]
    (prediction,), (explanation,) = model.predict([row]), model.explain([row], method="occlusion")
    assert explanation.output == pytest.approx(float(expected(logits(model, row)[0], prediction)), abs=1e-4)


def test_an_answer_is_the_sum_of_its_start_and_end(open_model):
    model, rows = open_model("span"), KINDS["span"][1]
    (prediction,), (explanation,) = model.predict(rows), model.explain(rows)
    candidate = next(one for one, _ in prediction.n_best if one.text == prediction.label)
    assert explanation.label == prediction.label
    assert explanation.output == pytest.approx(candidate.score, abs=1e-4)


def test_a_label_a_tag_and_an_option_may_be_chosen(open_model):
    model = open_model("classification")
    outputs = logits(model, "rain came")[0][0]
    for number, label in enumerate(model.labels):
        (explanation,) = model.explain(["rain came"], label=label)
        assert (explanation.label, explanation.output) == (label, pytest.approx(float(outputs[number]), abs=1e-4))
    outputs = logits(open_model("tags"), "Rain came.")[0]
    (explanation,) = open_model("tags").explain(["Rain came."], label="I-W", word=1)
    assert (explanation.label, explanation.output) == ("I-W", pytest.approx(float(outputs[2, 2]), abs=1e-4))
    row = KINDS["choice"][1][0]
    (explanation,) = open_model("choice").explain([row], label="2")
    assert explanation.output == pytest.approx(float(logits(open_model("choice"), row)[0][2]), abs=1e-4)
    assert (explanation.label, explanation.words) == (2, ("rain", "salt"))


def test_every_kind_with_predictions_has_an_explained_output_of_a_regression_its_number():
    explained = targets.EXPLAINED
    assert set(explained) == set(KINDS)
    assert explained["multi_label"] == explained["classification"]
    assert explained["contrastive"] == explained["similarity"]
    row = sentences.build([("rain", None)], None, WordPieceTokenizer(Vocabulary(TOKENS)), max_seq_length=8)
    target = targets.NUMBER.target(targets.Case(row, SimpleNamespace(label=2.5), ()))
    assert (target.label, target.rows.tolist(), target.weights.tolist()) == (2.5, [0], [[1.0]])
    with pytest.raises(FlagError, match="--label=1: this kind of model has none to choose"):
        targets.NUMBER.target(targets.Case(row, SimpleNamespace(label=2.5), (), "1"))


def test_occlusion_is_the_drop_without_a_word(open_model):
    model = open_model("classification")
    (explanation,) = model.explain([PAIR], label="1", method="occlusion")
    _, features = logits(model, PAIR)
    ids = features.token_ids.copy()
    ids[1:3] = TOKENS.index("[MASK]")  # both pieces of Rains
    without = model.outputs(dataclasses.replace(features, token_ids=ids))["logits"][0, 1]
    assert explanation.words == ("Rains", "came", "the", "storm", "over", "soup", ".")
    assert explanation.segments == (0, 0, 1, 1, 1, 1, 1)
    assert explanation.scores[0] == pytest.approx(explanation.output - float(without), abs=1e-4)


def test_occlusion_alone_needs_a_mask_token(open_model, monkeypatch):
    model = open_model("classification")
    monkeypatch.setattr(model.trained.vocabulary, "_mask_id", None)
    assert model.explain([PAIR])[0].words
    with pytest.raises(VocabularyError, match="has no mask token"):
        model.explain([PAIR], method="occlusion")


def test_integrated_gradients_are_those_of_the_formula(open_model):
    """NumPy's encoder in float64, its derivatives by differences."""
    model = open_model("classification")
    (explanation,) = model.explain([PAIR], label="1")
    reader, config = CheckpointReader(model.checkpoint), BertConfig.from_json_file(model.trained.folder / "bert_config.json")
    weights = {name: reader[name].astype(np.float64) for name in reader.shapes if name != "global_step"}
    _, features = logits(model, PAIR)
    batch = features.batch(np.array([0]), len(features.token_ids))
    (ids,), table = batch["input_ids"], weights["bert/embeddings/word_embeddings"]
    special = np.isin(ids, [TOKENS.index("[CLS]"), TOKENS.index("[SEP]")])
    begin = table[np.where(special, ids, TOKENS.index("[PAD]"))]
    whole, size = table[ids] - begin, len(ids)  # [T, D]
    nodes, factors = np.polynomial.legendre.leggauss(explanation.steps)
    moved = 1e-5 * np.eye(size)[:, :, None] * whole  # [T, T, D] one token at a time
    path = begin + ((nodes + 1) / 2)[:, None, None] * whole  # [S, T, D]
    points = np.stack([path[:, None] + moved, path[:, None] - moved])  # [2, S, T, T, D]
    rows = int(np.prod(points.shape[:3]))
    weights["bert/embeddings/word_embeddings"] = points.reshape(rows * size, -1)
    _, pooled = reference.bert(
        np.arange(rows * size).reshape(rows, size),
        np.ones([rows, size], np.int32),
        np.tile(batch["segment_ids"], [rows, 1]),
        weights,
        config,
    )
    up, down = (pooled @ weights["output_weights"][1]).reshape(2, explanation.steps, size)
    of_tokens = factors / 2 @ ((up - down) / 2e-5)
    expected = np.bincount([0, 0, 1, 2, 3, 4, 5, 6], of_tokens[~special])
    np.testing.assert_allclose(explanation.scores, expected, atol=1e-4)


def test_long_texts_hold_the_attention_of_some_queries_at_a_time(project, tmp_path, monkeypatch):
    run, by_blocks = write(tmp_path / "run", project, "classification"), mock.Mock(wraps=custom_gradients.attend_by_blocks)
    monkeypatch.setattr(custom_gradients, "attend_by_blocks", by_blocks)

    def explained():
        with bert_tf.load(run) as model:
            (explanation,) = model.explain([PAIR], label="1")
        return explanation.scores

    whole = explained()
    assert not by_blocks.called
    monkeypatch.setattr(config, "_QUERIES", 4)
    np.testing.assert_allclose(explained(), whole, atol=1e-5)
    assert by_blocks.called


def test_steps_are_doubled_until_scores_are_complete(open_model, monkeypatch):
    model = open_model("classification")
    (explanation,) = model.explain([PAIR], steps=1)
    assert explanation.steps & (explanation.steps - 1) == 0
    assert explanation.completeness_error <= 0.01
    monkeypatch.setattr(explainer, "_TOLERANCE", 0.0)
    examples = model.reader.examples([PAIR])
    (explanation,) = model.session("explain", "").explain(examples, steps=3, most_steps=8)
    assert explanation.steps == 6


def test_a_text_in_windows_is_explained_as_a_whole():
    text = " ".join(TOKENS[5 + n % 20] for n in range(40))
    tokenizer = TracingTokenizer(WordPieceTokenizer(Vocabulary(TOKENS)), whole=False)
    traced = sentences.build([(text, None)], None, tokenizer, max_seq_length=24, long_text="windows")
    words = tokenizer.words(traced, np.arange(len(traced)))
    assert words.texts == tuple(text.split())
    assert np.bincount(words.of_tokens[words.of_tokens >= 0]).tolist() == [1] * 11 + [2] * 7 + [3] * 4 + [2] * 11 + [1] * 7
    prediction = SimpleNamespace(label="no", probabilities={"no": 0.6, "yes": 0.4})
    target = targets.LABEL.target(targets.Case(traced, prediction, ("no", "yes")))
    assert (target.label, target.weights.tolist()) == ("no", [[1 / 3, 0.0]] * 3)


@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_no_batch_is_larger_than_some_windows(method, project, tmp_path, monkeypatch):
    """Parts of the rows have the same sums."""
    computed, compute = [], explainer._Gradients.compute

    def counted(gradients, explained, ids, *others, **options):
        computed.append(ids.size)
        return compute(gradients, explained, ids, *others, **options)

    monkeypatch.setattr(explainer._Gradients, "compute", counted)
    text = " ".join(TOKENS[5 + n % 20] for n in range(60))
    with bert_tf.load(write(tmp_path / "run", project, "classification"), long_text="windows", max_seq_length=24) as model:
        examples, explain = model.reader.examples([("rain", text)]), model.session("explain", "").explain
        few = {} if method == "occlusion" else {"steps": 3, "most_steps": 3}
        (whole,) = explain(examples, method, **few)
        assert max(computed) > 3 * 24
        computed.clear()
        monkeypatch.setattr(explainer, "_TOKENS", 2 * 24)
        (in_parts,) = explain(examples, method, **few)
    assert max(computed) <= 2 * 24
    np.testing.assert_allclose(in_parts.scores, whole.scores, atol=1e-5)


@pytest.mark.parametrize("text", ["w1  w2", " w1   w2  ", "w1 \n w2 "])
def test_blanks_are_no_words(text):
    pytest.importorskip("tokenizers")
    plain = tokenizer_of(library.LibraryVocabulary(byte_level()), lower_case=False)
    tokenizer = TracingTokenizer(plain, whole=False)
    traced = sentences.build([(text, None)], None, tokenizer, max_seq_length=24)
    words = tokenizer.words(traced, np.array([0]))
    assert words.texts == ("w1", "w2")
    assert (words.of_tokens[0, 1:-1] != SPECIAL).all()  # each piece belongs to one


def test_words_are_written_as_in_their_texts_those_of_tags_as_in_the_row(open_model):
    plain = WordPieceTokenizer(Vocabulary(TOKENS))
    tokenizer = TracingTokenizer(plain, whole=False)
    read = tokenizer.ids("  Rains\u200b, zebra's"), tokenizer.ids("SOUP")
    traced = sentences.build([("a Rains, zebra's", "SOUP")], None, tokenizer, max_seq_length=8)
    words = tokenizer.words(traced, np.array([0]))
    assert tokenizer.piece_ids(np.array(read[0])).tolist() == plain.ids("Rains, zebra's")
    assert words.texts == ("a", "Rains", ",", "SOUP")  # what is cut off is no word
    assert words.segments == (0, 0, 0, 1)
    assert words.of_tokens.tolist() == [[SPECIAL, 0, 1, 1, 2, SPECIAL, 3, SPECIAL]]
    row = ["Rains,", "storm", "zebra's"]
    (explanation,) = open_model("tags").explain([row])
    assert explanation.words == tuple(row)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("classification", {"method": "lime"}, "--method: unknown method 'lime'"),
        ("classification", {"label": "2"}, "--label: unknown label '2'"),
        ("classification", {"steps": 0}, "--steps=0: expected at least 1"),
        (
            "classification",
            {"method": "occlusion", "steps": 64},
            "--steps: is for --method=integrated_gradients, not occlusion",
        ),
        ("classification", {"word": 1}, "--word=1: this kind of model has none to choose"),
        ("similarity", {"label": "1"}, "--label=1: this kind of model has none to choose"),
        ("choice", {"label": 3}, "--label: unknown label '3'"),
        ("tags", {"word": 7}, "--word=7: the model reads 3 words, counted from 0"),
        ("tags", {"word": "1"}, "--word='1': expected a whole number"),
        ("tags", {"word": -1}, "--word=-1: expected at least 0"),
    ],
)
def test_what_cannot_be_explained_is_one_line(open_model, kind, given, message):
    with pytest.raises(FlagError, match=message):
        open_model(kind).explain(KINDS[kind][1][:1], **given)


def test_a_closed_model_explains_nothing(open_model):
    model = bert_tf.load(open_model("classification").trained.folder)
    assert model.explain([]) == []
    model.close()
    with pytest.raises(ClosedError):
        model.explain(["rain"])


def test_html_is_escaped_and_coloured_and_text_has_colours_only_if_asked_for():
    page = FOUND._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page
    assert '<span style="background: rgba(40, 160, 60, 0.70)" title="+1.00">a</span>' in page
    assert "rgba(220, 60, 50, 0.35)" in page
    assert str(FOUND).splitlines() == [
        "<b>: output 3.0000, without words 1.0000; occlusion, completeness error 50.00%",
        "",
        "a",
        "<i>",
        "",
        " +2.0000  a",
        " -1.0000  <i>",
    ]
    assert FOUND.in_colours().splitlines()[2:4] == ["\033[30;48;5;41ma\033[0m", "\033[30;48;5;210m<i>\033[0m"]


def test_the_command_prints_json(open_model, capsys):
    model = open_model("classification")
    assert lines.run("explain", model.trained.folder, "--json", text=PAIR[0], text_b=PAIR[1]) == 0
    printed = json.loads(capsys.readouterr().out)
    (explanation,) = model.explain([PAIR])
    assert printed["words"] == list(explanation.words)
    assert printed["scores"] == pytest.approx(explanation.scores, abs=1e-5)
    assert printed["completeness_error"] <= 0.01


def test_json_is_ascii_for_any_locale(monkeypatch, capsys):
    found = dataclasses.replace(FOUND, words=("\u00fcber", "\u96e8"))
    monkeypatch.setattr(command, "_explain", lambda _: found)
    assert lines.run("explain", ".", "--json", row='{"text": "rain"}') == 0
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed)["words"] == list(found.words)


@pytest.mark.parametrize(("value", "coloured"), [("", True), ("1", False)])
def test_the_command_prints_colours_on_terminals(monkeypatch, capsys, value, coloured):
    monkeypatch.setattr(command, "_explain", lambda _: FOUND)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", value)
    assert lines.run("explain", ".", row='{"text": "rain"}') == 0
    assert capsys.readouterr().out == (FOUND.in_colours() if coloured else str(FOUND))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "give exactly one of --text and --row"),
        ({"text": "a", "row": "1"}, "give exactly one of --text and --row"),
        ({"text": "a", "method": "lime"}, "--method: unknown value 'lime'"),
        ({"row": "{"}, "--row: line 1: not JSON"),
    ],
)
def test_a_wrong_command_is_one_line(open_model, capsys, flags, message):
    assert lines.run("explain", open_model("classification").trained.folder, **flags) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
