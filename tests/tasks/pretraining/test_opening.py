"""Which documents a split has, and what of files is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import DataError, FlagError, VocabularyError
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.on_disk import Opening
from bert_tf.tasks.pretraining.opening import SplitFiles
from bert_tf.tasks.pretraining.settings import PretrainingSettings
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import texts
from tests.tiny import TOKENS

DOCUMENTS, LENGTH = 30, 24
NUMBERS = tuple(f"n{number}" for number in range(DOCUMENTS))  # a word of each document alone


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(Vocabulary([*TOKENS, *NUMBERS]), lower_case=True)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Every sentence of a document names its number."""
    named = [
        [f"{number} {sentence}" for sentence in sentences] for number, sentences in zip(NUMBERS, texts.documents(DOCUMENTS))
    ]
    return texts.write(tmp_path_factory.mktemp("text") / "text.txt", named)


def opened(folder, tokenizer, purpose, **settings):
    return SplitFiles(purpose, purpose, PretrainingSettings(**settings)).opened(Opening(tokenizer, LENGTH, folder))


def words(rows):
    """Returns the pieces of all rows."""
    return {piece for row in rows for piece in row.pieces}


@pytest.mark.parametrize("nsp", [True, False])
def test_held_out_documents_never_appear_in_training(nsp, text, tokenizer, tmp_path):
    """Nor as the random text of a pair."""
    settings = {"input_file": str(text), "held_out_documents": 6, "nsp": nsp}
    trained, held_out = (words(opened(tmp_path, tokenizer, split, **settings)) & set(NUMBERS) for split in (TRAIN, DEV))
    assert len(trained) == DOCUMENTS - 6
    assert len(held_out) == 6
    assert not trained & held_out


@pytest.mark.parametrize(("asked", "held_out"), [(None, 1), (0, 0), (29, 29)])
def test_a_twentieth_is_held_out_unless_told_otherwise(asked, held_out, text, tokenizer, tmp_path):
    rows = opened(tmp_path, tokenizer, TRAIN, input_file=str(text), held_out_documents=asked)
    assert len(words(rows) & set(NUMBERS)) == DOCUMENTS - held_out


def test_with_a_held_out_file_all_documents_are_trained_on(text, tokenizer, tmp_path):
    other = texts.write(tmp_path / "other.txt", [["rain came .", "storm went ."]])
    settings = {"input_file": str(text), "held_out_file": str(other)}
    assert words(opened(tmp_path, tokenizer, TRAIN, **settings)) >= set(NUMBERS)
    assert not words(opened(tmp_path, tokenizer, DEV, **settings)) & set(NUMBERS)


def test_held_out_rows_are_the_same_each_time_and_not_more_than_asked_for(text, tokenizer, tmp_path):
    settings = {"input_file": str(text), "held_out_documents": 15, "max_eval_steps": 2}
    first, again = (opened(tmp_path, tokenizer, DEV, **settings) for _ in range(2))
    assert len(first) == 16
    for name, column in first.features().columns().items():
        np.testing.assert_array_equal(column, again.features().columns()[name])
    assert len(np.unique(first.features().targets["documents"])) > 10  # spread over all


def test_rows_are_named_by_where_they_are_and_say_what_the_pair_is(text, tokenizer, tmp_path):
    rows = opened(tmp_path, tokenizer, TRAIN, input_file=str(text))
    row = rows[3]
    assert row.guid == "train-3"
    assert row.pieces[0] == "[CLS]"
    assert {one.label for one in rows} == {"next", "random"}
    assert opened(tmp_path, tokenizer, TRAIN, input_file=str(text), nsp=False)[3].label is None


def test_the_digest_is_of_the_text_and_not_of_its_place(text, tokenizer, tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text.read_bytes())
    one, other = (opened(tmp_path, tokenizer, TRAIN, input_file=str(path)).digest for path in (text, copy))
    copy.write_text(copy.read_text() + "\nrain came\n")
    assert one == other != opened(tmp_path, tokenizer, TRAIN, input_file=str(copy)).digest


def make_shards(text, tokenizer, folder, **settings):
    (folder / "vocab.txt").write_text(tokenizer.vocabulary.to_text())
    bert_tf.make_pretraining_data(
        input_file=str(text), output_file=str(folder / "rows.tfrecord"), vocab_file=str(folder / "vocab.txt"),
        max_seq_length=LENGTH, max_predictions_per_seq=5, dupe_factor=1, workers=1, **settings,
    )  # fmt: skip
    return folder / "rows.tfrecord"


@pytest.fixture(scope="module")
def shards(text, tokenizer, tmp_path_factory):
    return make_shards(text, tokenizer, tmp_path_factory.mktemp("shards"))


def test_shards_are_read_as_they_were_masked(shards, tokenizer, tmp_path):
    rows = opened(tmp_path, tokenizer, TRAIN, input_file=str(shards))
    units = np.array([5, 0, 2])
    first, later = (rows.rows.drawn(units, np.full(3, epoch)).features for epoch in (0, 7))
    for name, column in first.columns().items():
        np.testing.assert_array_equal(column, later.columns()[name])
    assert first.slots.max() <= 5
    assert "[MASK]" not in rows[5].pieces
    assert words(rows) >= set(NUMBERS)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_predictions_per_seq": 4}, "its rows have 5 masked words; --max_predictions_per_seq=5 reads them"),
        ({"length": LENGTH - 1}, f"its rows have {LENGTH} tokens; --max_seq_length={LENGTH} reads them"),
    ],
)
def test_shards_that_do_not_fit_the_flags_are_one_line(limits, expected, shards, tokenizer, tmp_path):
    length = limits.pop("length", LENGTH)
    split = SplitFiles(TRAIN, TRAIN, PretrainingSettings(input_file=str(shards), **limits))
    with pytest.raises(DataError, match=expected):
        len(split.opened(Opening(tokenizer, length, tmp_path)))


def test_shards_of_single_texts_have_no_next_sentences(text, tokenizer, tmp_path):
    singles = str(make_shards(text, tokenizer, tmp_path, nsp=False))
    assert opened(tmp_path, tokenizer, TRAIN, input_file=singles, nsp=False)[0].label is None
    with pytest.raises(DataError, match="its rows are single texts, .* add --nsp=false"):
        len(opened(tmp_path, tokenizer, TRAIN, input_file=singles))


def test_shards_of_another_vocabulary_are_refused(shards, tmp_path):
    other = WordPieceTokenizer(Vocabulary([*TOKENS, *NUMBERS[::-1]]), lower_case=True)
    with pytest.raises(VocabularyError, match="it was made with another vocabulary"):
        len(opened(tmp_path, other, TRAIN, input_file=str(shards)))


def test_of_shards_nothing_can_be_held_out(shards, tokenizer, tmp_path):
    with pytest.raises(DataError, match="shards do not say where documents begin: name --held_out_file"):
        len(opened(tmp_path, tokenizer, DEV, input_file=str(shards)))


def test_shards_can_be_held_out_as_a_file(shards, text, tokenizer, tmp_path):
    rows = opened(tmp_path, tokenizer, DEV, input_file=str(text), held_out_file=str(shards))
    assert words(rows) >= set(NUMBERS)


def test_a_pattern_finds_shards_and_not_what_is_written_beside_them(text, tokenizer, tmp_path, monkeypatch):
    whole = opened(tmp_path, tokenizer, TRAIN, input_file=str(make_shards(text, tokenizer, tmp_path)))
    (tmp_path / "s").mkdir()
    make_shards(text, tokenizer, tmp_path / "s", num_shards=2)
    (tmp_path / "s" / "vocab.txt").unlink()
    monkeypatch.chdir(tmp_path)
    assert sorted(path.suffix for path in (tmp_path / "s").iterdir()) == [".json", ".tfrecord", ".tfrecord"]
    assert len(opened(tmp_path, tokenizer, TRAIN, input_file="./s/*")) == len(whole)


def test_text_among_shards_is_one_line(shards, text, tokenizer, tmp_path):
    with pytest.raises(DataError, match=r"text\.txt: is not a TFRecord shard, but other files are"):
        len(opened(tmp_path, tokenizer, TRAIN, input_file=f"{shards},{text}"))


def test_a_folder_in_the_place_of_text_is_one_line(tokenizer, tmp_path):
    with pytest.raises(DataError, match="is a folder; name files"):
        len(opened(tmp_path / "run", tokenizer, TRAIN, input_file=str(tmp_path)))


def test_the_pipe_among_files_is_named(text, tokenizer, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FlagError, match=r"pipe: a pipe can be read only once"):
        len(opened(tmp_path / "run", tokenizer, TRAIN, input_file=f"{text},{tmp_path / 'pipe'}"))


@pytest.mark.parametrize(("given", "masks"), [({}, 27), ({"phase2_max_predictions_per_seq": 3}, 3)])
def test_masks_of_the_second_phase_grow_with_its_length_and_are_rounded_up(given, masks, text, tokenizer, tmp_path):
    settings = PretrainingSettings(input_file=str(text), phase2_max_seq_length=32, phase2_num_train_steps=1, **given)
    split = SplitFiles("train_phase2", TRAIN, settings, second=True)
    assert split.opened(Opening(tokenizer, LENGTH, tmp_path)).rows._masking.max_predictions_per_seq == masks


def test_one_document_is_trained_on_and_none_of_it_is_held_out(tokenizer, tmp_path):
    alone = texts.write(tmp_path / "text.txt", texts.documents(1))
    assert len(opened(tmp_path, tokenizer, TRAIN, input_file=str(alone)))
    with pytest.raises(DataError, match="the text is one document"):
        len(opened(tmp_path, tokenizer, DEV, input_file=str(alone)))


def test_documents_of_features_are_ranks(text, tokenizer, tmp_path):
    rows = opened(tmp_path, tokenizer, DEV, input_file=str(text), held_out_documents=3)
    assert set(rows.features().targets["documents"].tolist()) == {0, 1, 2}


def test_a_held_out_file_is_not_that_of_training_by_another_name(text, tokenizer, tmp_path):
    os.link(text, tmp_path / "link.txt")
    with pytest.raises(FlagError, match="link.txt is trained on too"):
        len(opened(tmp_path, tokenizer, TRAIN, input_file=str(text), held_out_file=str(tmp_path / "link.txt")))


def test_wrapped_text_is_warned_of_once(tokenizer, tmp_path, caplog):
    (tmp_path / "text.txt").write_text("rain came and went over the old town but\n" * 30 + "\n" + "storm went .\n" * 3)
    for purpose in (TRAIN, DEV):
        len(opened(tmp_path / "run", tokenizer, purpose, input_file=str(tmp_path / "text.txt")))
    assert caplog.text.count("lines look hard-wrapped") == 1


def test_text_of_another_vocabulary_is_warned_of_once(tokenizer, tmp_path, caplog):
    found = texts.write(tmp_path / "text.txt", [["你好 世界", "世界"], ["你好", "世界 你好"]])
    for purpose in (TRAIN, DEV):
        len(opened(tmp_path / "run", tokenizer, purpose, input_file=str(found)))
    assert caplog.text.count("100.0 % of the pieces are [UNK]") == 1
