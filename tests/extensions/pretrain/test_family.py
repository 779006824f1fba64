"""Pre-training: which documents a split has, masks of epochs, what of files is refused; metrics by hand."""

import dataclasses
import math
import os
from unittest import mock

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import BertError, DataError
from bert_tf.extensions.pretrain.corpus import records
from bert_tf.extensions.pretrain.evaluation import evaluate, most_confident_mistakes, of_outputs
from bert_tf.extensions.pretrain.family import PretrainingFamily
from bert_tf.extensions.pretrain.opening import SplitFiles
from bert_tf.extensions.pretrain.rows import DOCUMENTS, FIELDS, PretrainingExample, StoredRows, text_of
from bert_tf.extensions.pretrain.settings import PretrainingSettings
from bert_tf.features.columns import Features
from bert_tf.tasks.base import DEV, TRAIN, Opening
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import texts
from tests.tasks.refusals import refusal
from tests.tiny import TOKENS

COUNT, LENGTH = 30, 24
NUMBERS = {f"n{number}" for number in range(COUNT)}  # a word of each document alone
TOKENIZER = WordPieceTokenizer(Vocabulary([*TOKENS, *sorted(NUMBERS)]), lower_case=True)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Every sentence of a document names its number."""
    named = [[f"n{number} {sentence}" for sentence in of_one] for number, of_one in enumerate(texts.documents(COUNT))]
    return texts.write(tmp_path_factory.mktemp("text") / "text.txt", named)


def opened(folder, purpose, tokenizer=TOKENIZER, length=LENGTH, **settings):
    given = {name: str(value) if name.endswith("file") else value for name, value in settings.items()}
    return SplitFiles(purpose, purpose, PretrainingSettings(**given)).opened(Opening(tokenizer, length, folder))


def words(rows):
    """Returns the pieces of all rows."""
    return {piece for row in rows for piece in row.pieces}


@pytest.mark.parametrize("nsp", [True, False])
@pytest.mark.parametrize(("asked", "held_out"), [(None, 1), (0, 0), (6, 6), (29, 29)])
def test_held_out_documents_never_appear_in_training(nsp, asked, held_out, text, tmp_path):
    """Nor as the random text of a pair; a twentieth is held out unless told otherwise."""
    settings = {"input_file": text, "held_out_documents": asked, "nsp": nsp}
    trained = words(opened(tmp_path, TRAIN, **settings)) & NUMBERS
    assert len(trained) == COUNT - held_out
    if held_out:
        assert words(opened(tmp_path, DEV, **settings)) & NUMBERS == NUMBERS - trained


def test_with_a_held_out_file_all_documents_are_trained_on_be_it_one(text, tmp_path):
    other = texts.write(tmp_path / "other.txt", [["rain came .", "storm went ."]])
    assert words(opened(tmp_path, TRAIN, input_file=text, held_out_file=other)) >= NUMBERS
    assert not words(opened(tmp_path, DEV, input_file=text, held_out_file=other)) & NUMBERS
    assert len(opened(tmp_path, TRAIN, input_file=texts.write(tmp_path / "text.txt", texts.documents(1))))


def test_held_out_rows_are_the_same_each_time_and_not_more_than_asked_for(text, tmp_path):
    settings = {"input_file": text, "held_out_documents": 15, "max_eval_steps": 2}
    first, again = (opened(tmp_path, DEV, **settings).features() for _ in range(2))
    assert len(first) == 16
    for name, column in first.columns().items():
        np.testing.assert_array_equal(column, again.columns()[name])
    ranks = set(first.targets["documents"].tolist())
    assert ranks == set(range(len(ranks)))
    assert len(ranks) > 10  # spread over all


def test_rows_are_named_by_where_they_are_and_their_digest_is_of_the_text_alone(text, tmp_path):
    rows = opened(tmp_path, TRAIN, input_file=text)
    assert (rows[3].guid, rows[3].pieces[0], rows[3:5][1].guid) == ("train-3", "[CLS]", "train-4")
    assert {one.label for one in rows} == {"next", "random"}
    assert opened(tmp_path, TRAIN, input_file=text, nsp=False)[3].label is None
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text.read_bytes())
    one, other = (opened(tmp_path, TRAIN, input_file=path).digest for path in (text, copy))
    copy.write_text(copy.read_text() + "\nrain came\n")
    assert one == other != opened(tmp_path, TRAIN, input_file=copy).digest


@pytest.mark.parametrize(("given", "masks"), [({}, 27), ({"phase2_max_predictions_per_seq": 3}, 3)])
def test_masks_of_the_second_phase_grow_with_its_length_and_are_rounded_up(given, masks, text, tmp_path):
    settings = PretrainingSettings(input_file=str(text), phase2_max_seq_length=32, phase2_num_train_steps=1, **given)
    split = SplitFiles("train_phase2", TRAIN, settings, second=True)
    assert split.opened(Opening(TOKENIZER, LENGTH, tmp_path)).rows._masking.max_predictions_per_seq == masks


def test_rows_of_the_second_phase_are_no_longer_than_the_positions_of_the_model(text, tmp_path):
    settings = PretrainingSettings(input_file=str(text), phase2_num_train_steps=1)
    split = SplitFiles("train_phase2", TRAIN, settings, second=True)
    rows = split.opened(Opening(TOKENIZER, LENGTH, tmp_path, positions=24))
    assert max(len(row.pieces) for row in rows) <= 24 < settings.phase2_max_seq_length


# Shards


def make_shards(text, folder, **settings):
    (folder / "vocab.txt").write_text(TOKENIZER.vocabulary.to_text())
    bert_tf.make_pretraining_data(
        input_file=str(text), output_file=str(folder / "rows.tfrecord"), vocab_file=str(folder / "vocab.txt"),
        max_seq_length=LENGTH, max_predictions_per_seq=5, dupe_factor=1, workers=1, **settings,
    )  # fmt: skip
    return folder / "rows.tfrecord"


@pytest.fixture(scope="module")
def shards(text, tmp_path_factory):
    return make_shards(text, tmp_path_factory.mktemp("shards"))


def test_shards_are_read_as_they_were_masked_and_can_be_held_out_as_a_file(shards, text, tmp_path):
    rows = opened(tmp_path, TRAIN, input_file=shards)
    first, later = (rows.rows.drawn(np.array([5, 0, 2]), np.full(3, epoch)).features for epoch in (0, 7))
    for name, column in first.columns().items():
        np.testing.assert_array_equal(column, later.columns()[name])
    assert first.slots.max() <= 5
    assert "[MASK]" not in rows[5].pieces
    assert words(rows) >= NUMBERS
    assert words(opened(tmp_path, DEV, input_file=text, held_out_file=shards)) >= NUMBERS


def test_a_shard_that_is_missing_is_warned_of(text, tmp_path, caplog):
    make_shards(text, tmp_path, num_shards=3)
    assert len(opened(tmp_path / "a", TRAIN, input_file=f"{tmp_path}/*.tfrecord"))
    assert not caplog.text
    (tmp_path / "rows-00001-of-00003.tfrecord").unlink()
    assert len(opened(tmp_path / "b", TRAIN, input_file=f"{tmp_path}/*.tfrecord"))
    assert f"{tmp_path}/rows-00001-of-00003.tfrecord: is not there, but other shards of its set are" in caplog.text


def test_shards_of_single_texts_have_no_next_sentences_and_a_pattern_finds_shards_alone(shards, text, tmp_path, monkeypatch):
    make_shards(text, tmp_path, num_shards=2)
    (tmp_path / "vocab.txt").unlink()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".tfrecord", ".tfrecord"]
    monkeypatch.chdir(tmp_path)
    read = mock.Mock(wraps=records.json_documents.read_json)
    monkeypatch.setattr(records.json_documents, "read_json", read)
    assert len(opened(tmp_path / "a", TRAIN, input_file="./*")) == len(opened(tmp_path / "b", TRAIN, input_file=shards))
    manifests = [path for (path,), _ in read.call_args_list if path.name.endswith(".tfrecord.json")]
    assert len(manifests) == len(set(manifests)) == 2  # it lists all shards of a command
    singles = make_shards(text, tmp_path / "a", nsp=False)
    assert opened(tmp_path, TRAIN, input_file=singles, nsp=False)[0].label is None
    with pytest.raises(DataError, match="its rows are single texts, .* add --nsp=false"):
        len(opened(tmp_path, TRAIN, input_file=singles))


OTHER = WordPieceTokenizer(Vocabulary([*TOKENS, *sorted(NUMBERS)[::-1]]), lower_case=True)


@pytest.mark.parametrize(
    ("purpose", "files", "settings", "message"),
    [
        (TRAIN, "{shards}", {"max_predictions_per_seq": 4}, "its rows have 5 masked words; --max_predictions_per_seq=5 reads"),
        (TRAIN, "{shards}", {"length": LENGTH - 1}, f"its rows have {LENGTH} tokens; --max_seq_length={LENGTH} reads them"),
        (TRAIN, "{shards}", {"tokenizer": OTHER}, "it was made with another vocabulary"),
        (DEV, "{shards}", {}, "shards do not say where documents begin: name --held_out_file"),
        (TRAIN, "{shards},{text}", {}, "text.txt: is not a TFRecord shard, but other files are"),
        (TRAIN, "{folder}", {}, "is a folder; name files"),
        (TRAIN, "{text},{folder}/pipe", {}, "pipe: a pipe can be read only once"),
        (TRAIN, "{text}", {"held_out_file": "{folder}/link.txt"}, "link.txt is trained on too"),
        (
            TRAIN,
            "{text},{folder}/one.txt",
            {"phase2_input_file": "{folder}/link.txt"},
            "link.txt is in --input_file too; name --held",
        ),
        (TRAIN, "{text}", {"held_out_documents": COUNT}, f"--held_out_documents={COUNT}: the text has {COUNT}; some must be"),
        (DEV, "{text}", {"held_out_documents": 0}, "nothing is held out to evaluate on (--held_out_documents=0)"),
        (DEV, "{folder}/one.txt", {}, "the text is one document"),
    ],
)
def test_files_that_cannot_be_used_are_one_line(purpose, files, settings, message, shards, text, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.link(text, tmp_path / "link.txt")
    texts.write(tmp_path / "one.txt", texts.documents(1))
    settings = {"input_file": files, **settings}
    settings = {
        name: value.format(shards=shards, text=text, folder=tmp_path) if isinstance(value, str) else value
        for name, value in settings.items()
    }
    assert message in refusal(BertError, lambda: len(opened(tmp_path / "run", purpose, **settings)))


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        ("rain came and went over the old town but\n" * 30 + "\n" + "storm went .\n" * 3, "lines look hard-wrapped"),
        ("你好 世界\n世界\n\n你好\n世界 你好\n", "100.0 % of the pieces are [UNK]"),
    ],
)
def test_odd_text_is_warned_of_once(content, warning, tmp_path, caplog):
    (tmp_path / "text.txt").write_text(content)
    for purpose in (TRAIN, DEV):
        len(opened(tmp_path / "run", purpose, input_file=tmp_path / "text.txt"))
    assert caplog.text.count(warning) == 1


def test_fewer_masks_than_their_share_are_warned_of_once_in_each_phase(text, tmp_path, caplog):
    settings = {"input_file": str(text), "max_predictions_per_seq": 2, "phase2_max_seq_length": 32}
    for purpose, second in ((TRAIN, False), (DEV, False), (TRAIN, True)):
        split = SplitFiles(purpose, purpose, PretrainingSettings(**settings, phase2_num_train_steps=1), second=second)
        assert len(split.opened(Opening(TOKENIZER, LENGTH, tmp_path)))
    said = "max_predictions_per_seq=%d is less than --masked_lm_prob=0.15 of %d tokens: fewer are masked; %d is enough"
    assert caplog.messages == [f"--{said}" % (2, 24, 4), f"--phase2_{said}" % (3, 32, 5)]


# Masks


@pytest.fixture(scope="module")
def rows(text, tmp_path_factory):
    return opened(tmp_path_factory.mktemp("rows"), TRAIN, input_file=text).rows


def masked(rows, units, epochs):
    """Returns what the model reads of each row, and what it is to find there."""
    features = rows.drawn(np.array(units), np.array(epochs)).features
    batch = features.batch(np.arange(len(units)), LENGTH)
    names = ("input_ids", "masked_lm_positions", "masked_lm_ids", "slots")
    return [
        (ids.tolist(), places[:count].tolist(), words[:count].tolist())
        for ids, places, words, count in zip(*(batch[name] for name in names))
    ]


def test_a_mask_is_a_function_of_epoch_and_row_alone(rows):
    alone = [masked(rows, [unit], [epoch])[0] for unit, epoch in ((4, 0), (9, 1), (4, 1))]
    assert masked(rows, [4, 9, 4], [0, 1, 1]) == alone
    assert masked(rows, [9, 4], [1, 0]) == [alone[1], alone[0]]
    assert alone[0] != alone[2]
    for unit, (ids, places, words) in enumerate(masked(rows, range(8), [0] * 8)):  # masked words put back are the row
        for place, word in zip(places, words):
            ids[place] = word
        pieces = rows.example(unit, "train").pieces
        assert [TOKENIZER.vocabulary.tokens[number] for number in ids[: len(pieces)]] == list(pieces)


def test_features_of_rows(rows):
    features = rows.drawn(np.arange(6), np.zeros(6, int)).features
    assert features.weight(np.arange(6)) == features.slots.sum() > 6
    assert rows.batch_fields == features.batch_fields
    roomy = dataclasses.replace(rows._masking, max_predictions_per_seq=1 << 60)  # room does not grow with this bound alone
    drawn = StoredRows(rows._stored, roomy, longest=LENGTH, digest="").drawn(np.arange(6), np.zeros(6, int)).features
    np.testing.assert_array_equal(drawn.token_ids, features.token_ids)
    for unit, first in enumerate(features.first_lengths):
        assert rows.example(unit, "train").pieces.index("[SEP]") == first - 1


# Evaluation

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "the", "cat", "s", "##at", "sat"))
ROWS = [  # what is read, what is masked where, what the model says there, with which probability, label of the pair
    ("[CLS] the [MASK] sat [SEP]", {2: ("cat", "cat", 0.5)}, 0),
    ("[CLS] [MASK] s sat [SEP]", {1: ("the", "sat", 0.9), 2: ("s", "s", 0.25), 3: ("##at", "the", 0.3)}, 1),
]
TRUE = (0.5, 0.01, 0.25, 0.1)  # probabilities of the masked words


@pytest.fixture
def predictions():
    masks = [mask for _, masks, _ in ROWS for mask in masks.items()]
    features = Features(
        token_ids=np.array([number for text, *_ in ROWS for number in VOCABULARY.ids(text.split())], np.int32),
        lengths=np.array([len(text.split()) for text, *_ in ROWS], np.int32),
        first_lengths=np.array([2, 2], np.int32),
        targets={
            "masked_lm_positions": np.array([place for place, _ in masks], np.int32),
            "masked_lm_ids": np.array([VOCABULARY.id(word) for _, (word, *_) in masks], np.int32),
            "next_sentence_labels": np.array([label for *_, label in ROWS], np.int32),
            "documents": np.array([0, 1], np.int32),
        },
        fields=(*FIELDS, DOCUMENTS),
        slots=np.array([len(masks) for _, masks, _ in ROWS], np.int32),
    )
    outputs = {
        "masked_lm_log_probs": np.log(TRUE).astype(np.float32),
        "masked_lm_top_ids": np.array([[VOCABULARY.id(said), 0] for _, (_, said, _) in masks]),
        "masked_lm_top_log_probs": np.log([[sure, 0.001] for _, (*_, sure) in masks]).astype(np.float32),
        "next_sentence_logits": np.array([[2.0, 0.0], [1.0, 0.0]], np.float32),
    }
    return of_outputs(outputs, features)


def test_metrics_are_those_of_the_hand(predictions):
    evaluation = evaluate(predictions, VOCABULARY)
    loss = -sum(map(math.log, TRUE)) / 4
    pairs = (math.log1p(math.exp(-2.0)) + math.log1p(math.exp(1.0))) / 2
    of_words = {"masked_lm_accuracy": 0.5, "masked_lm_loss": loss, "perplexity": math.exp(loss)}
    assert evaluation.metrics == pytest.approx({**of_words, "next_sentence_accuracy": 0.5, "next_sentence_loss": pairs})
    assert (evaluation.loss, evaluation.examples, evaluation.collapsed) == (pytest.approx(loss + pairs), 2, None)
    by_seen, by_piece = (panel.rows for panel in evaluation.panels)
    assert [row[:3] for row in by_seen] == [("[MASK]", 2, 0.5), ("the word itself", 1, 1.0), ("another word", 1, 0.0)]
    assert [row[:3] for row in by_piece] == [("beginning of a word", 3, pytest.approx(2 / 3)), ("rest of a word (##)", 1, 0.0)]
    low, high = evaluation.intervals["masked_lm_loss"]  # of whole documents
    assert (low, high) == pytest.approx((-math.log(0.5), -sum(map(math.log, TRUE[1:])) / 3), rel=1e-4)
    predictions.features.targets["documents"][:] = 0
    assert evaluate(predictions, VOCABULARY).intervals == {}


@pytest.mark.parametrize(("number", "word"), [(VOCABULARY.id("the"), "the"), (12, "[12]")])  # one pads the table of words
def test_a_model_that_says_one_word_has_learned_nothing(predictions, number, word):
    predictions.best_ids[:, 0] = number
    assert evaluate(predictions, VOCABULARY).collapsed == f"every masked word is predicted as '{word}'"
    examples = [PretrainingExample("dev", ("[CLS]", "the", "s", "##at", "[SEP]"))] * 2
    assert {mistake["predicted"] for mistake in most_confident_mistakes(predictions, examples, VOCABULARY)} == {word}


def test_the_surest_mistakes_come_first_in_their_text(predictions):
    examples = [PretrainingExample("dev-0", ()), PretrainingExample("dev-1", ("[CLS]", "the", "s", "##at", "[SEP]"))]
    surest, other = most_confident_mistakes(predictions, examples, VOCABULARY)
    assert (surest["label"], surest["predicted"], surest["confidence"]) == ("the", "sat", pytest.approx(0.9))
    assert (surest["text_a"], surest["marks"]) == ("the sat [SEP]", [(0, 3, "label")])
    assert (other["id"], other["label"], other["marks"]) == ("dev-1", "##at", [(5, 7, "label")])
    assert text_of(("##s", "s", "##at", ".")) == ("s sat .", [(0, 1), (2, 3), (3, 5), (6, 7)])


def test_a_record_without_a_pretraining_changes_no_family():
    family = PretrainingFamily()
    assert family.as_trained({"pooling": "cls"}) == family
