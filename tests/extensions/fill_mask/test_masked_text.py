import dataclasses
import json

import pytest

from bert_tf.batch.job import Columns
from bert_tf.errors import BadRowsError
from bert_tf.extensions.fill_mask import filler
from bert_tf.extensions.pretrain.head import PretrainingHead
from bert_tf.tokenization.library import LibraryVocabulary
from bert_tf.tokenization.tokenizer import tokenizer_of
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests import tokenizer_files
from tests.tiny import TOKENS

VOCABULARY = Vocabulary(TOKENS)
TOKENIZER = WordPieceTokenizer(VOCABULARY)


def read(text: str, longest: int) -> list[tuple[str, list[int]]]:
    """What is read of a text: pieces of each row, and the positions that are asked for."""
    rows = filler.rows(text, TOKENIZER, longest)[0]
    return [(" ".join(VOCABULARY.tokens[number] for number in ids), positions) for ids, positions in rows]


def test_places_are_characters_of_the_text_where_other_special_pieces_are_words():
    text = "¿Rain [MASK]? 雨[MASK]."
    assert [text[start:end] for start, end in filler.places(text)] == ["[MASK]", "[MASK]"]
    assert filler.places("[mask] MASK [ MASK ]") == []
    assert "[SEP] rain" not in read("[SEP] rain [MASK]", 24)[0][0]


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("Rain [MASK] soup", 24, [("[CLS] rain [MASK] soup [SEP]", [2])]),
        ("rain[MASK]soup", 24, [("[CLS] rain [MASK] soup [SEP]", [2])]),
        ("[MASK][MASK]", 24, [("[CLS] [MASK] [MASK] [SEP]", [1, 2])]),
        ("[MASK] rains", 24, [("[CLS] [MASK] rain ##s [SEP]", [1])]),
        ("\x00[MASK]\u200b", 24, [("[CLS] [MASK] [SEP]", [1])]),
        ("a the [MASK] new [MASK]", 7, [("[CLS] a the [MASK] new [MASK] [SEP]", [3, 5])]),  # just fits
        # of a longer text each place is read with what is around it
        ("a the old new [MASK] over under", 7, [("[CLS] old new [MASK] over under [SEP]", [3])]),
        ("[MASK] the old new came", 7, [("[CLS] [MASK] the old new came [SEP]", [1])]),
        ("[MASK] a the old new came", 7, [("[CLS] [MASK] a the old new [SEP]", [1])]),
        ("a the old new came [MASK]", 7, [("[CLS] the old new came [MASK] [SEP]", [5])]),
        (
            "a the [MASK] new [MASK] over",
            7,
            [("[CLS] a the [MASK] new [MASK] [SEP]", [3]), ("[CLS] the [MASK] new [MASK] over [SEP]", [4])],
        ),
    ],
)
def test_mask_is_one_piece_wherever_it_stands(text, longest, expected):
    assert read(text, longest) == expected


def test_features_keep_places_in_the_order_of_the_texts():
    _, *slots = PretrainingHead().inputs
    texts = ["rain [MASK]", "a the [MASK] new [MASK] over", "[MASK] [MASK]"]
    features = filler.features_of(texts, TOKENIZER, 7, slots)
    assert features.example_ids.tolist() == [0, 1, 1, 2]
    assert features.slots.tolist() == [1, 1, 1, 2]
    assert features.targets["masked_lm_positions"].tolist() == [2, 3, 4, 1, 2]
    assert features.truncated == 1
    assert features.lengths.tolist() == [4, 7, 7, 4]


def test_a_row_whose_mask_the_tokenizer_does_not_see_is_named_or_left_out(tmp_path):
    pytest.importorskip("tokenizers")
    content = json.loads(tokenizer_files.byte_level())
    content["added_tokens"][-1]["single_word"] = True
    tokenizer = tokenizer_of(LibraryVocabulary(json.dumps(content)), lower_case=False)
    (tmp_path / "texts.txt").write_text("w [MASK]\nw[MASK]w\n[MASK] w\n")
    inputs = filler.MaskedTextInputs(Columns(), tokenizer=tokenizer)
    said = r"row 2: the tokenizer does not see its mask token '<mask>'; put blanks around \[MASK\]; --skip_bad_rows"
    with pytest.raises(BadRowsError, match=said):
        list(inputs.chunks(str(tmp_path / "texts.txt")))
    (chunk,) = dataclasses.replace(inputs, skip_bad_rows=True).chunks(str(tmp_path / "texts.txt"))
    assert [text.guid for text in chunk] == ["1", "3"]


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("w [MASK]1", 24, [("<s> w \u0120 <mask> 1 </s>", [3])]),
        ("[MASK][MASK]", 24, [("<s> <mask> <mask> </s>", [1, 2])]),
        ("<mask> [MASK]", 24, [("<s> <mask> \u0120 <mask> </s>", [3])]),  # only what is asked
        ("12345[MASK]", 6, [("<s> 3 4 5 <mask> </s>", [4])]),
    ],
)
def test_a_tokenizer_of_a_library_reads_its_own_mask_token(text, longest, expected):
    pytest.importorskip("tokenizers")
    vocabulary = LibraryVocabulary(tokenizer_files.byte_level())
    rows, _ = filler.rows(text, tokenizer_of(vocabulary, lower_case=False), longest)
    assert [(" ".join(vocabulary.tokens[number] for number in ids), positions) for ids, positions in rows] == expected
