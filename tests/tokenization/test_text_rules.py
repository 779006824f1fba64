"""What Hugging Face's files beside a vocabulary say about texts, held to `tokenizers`."""

import json
from types import SimpleNamespace

import pytest
import tokenizers

from bert_tf.errors import VocabularyError
from bert_tf.extensions.export import tokenizer_json
from bert_tf.tokenization import text_rules
from bert_tf.tokenization.text_rules import Added, TextRules
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

PIECES = [
    *SPECIAL_TOKENS,
    "caf\u00e9",
    "cafe",
    "CAFE",
    "\u4e2d",
    "##\u6587",
    "\u6587",
    "un",
    "##able",
    "able",
    "<",
    ">",
    "e1",
    "!",
    "the",
]
TEXTS = (
    "caf\u00e9 Caf\u00c9 cafe\u0301 CAFE",
    "\u4e2d\u6587 un\u4e2d",
    "un<e1>able! <E1> the <e1>",
    "The covid-19able unCOVID-19, Covid-1\u00e9",
)
ADDED = (
    {"id": len(PIECES), "content": "<e1>", "normalized": False},
    {"id": len(PIECES) + 1, "content": "COVID-19", "normalized": True},
    {"id": len(PIECES) + 2, "content": "the", "normalized": False, "single_word": True},
)
WITHOUT_THE = [piece for piece in PIECES if piece != "the"]


def folder(tmp_path, pieces=PIECES, **files):
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return tmp_path / "vocab.txt"


def oracle(pieces, lower_case: bool, rules: TextRules, added=()):
    model = tokenizers.models.WordPiece(
        {piece: i for i, piece in enumerate(pieces)}, unk_token=UNK, max_input_chars_per_word=200
    )
    made = tokenizers.Tokenizer(model)
    made.normalizer = tokenizers.normalizers.BertNormalizer(True, rules.split_ideographs, rules.strip_accents, lower_case)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_tokens([tokenizers.AddedToken(**{k: v for k, v in one.items() if k != "id"}) for one in added])
    return made


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
@pytest.mark.parametrize("strip", [True, False, None])
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("normalizer", ["none", "alone", "in a sequence"])
def test_accents_and_ideographs_are_treated_as_the_files_say(tmp_path, lower_case, strip, split, normalizer):
    step = {"type": "BertNormalizer", "strip_accents": strip, "handle_chinese_chars": split}
    files = {
        "none": {"tokenizer_config": {"strip_accents": strip, "tokenize_chinese_chars": split}},
        "alone": {"tokenizer": {"normalizer": step}},
        "in a sequence": {"tokenizer": {"normalizer": {"type": "Sequence", "normalizers": [step]}}},
    }
    vocabulary = Vocabulary.from_file(folder(tmp_path, **files[normalizer]))
    assert vocabulary.text_rules == TextRules(strip, split)
    ours, theirs = WordPieceTokenizer(vocabulary, lower_case=lower_case), oracle(PIECES, lower_case, vocabulary.text_rules)
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=False)
        assert ours.ids(text) == expected.ids
        assert [piece.token for piece in ours.tokenize(text)] == expected.tokens


def test_steps_of_another_normalizer_are_followed_or_named(tmp_path, caplog):
    steps = [{"type": "NFKC"}, {"type": "Lowercase"}]
    vocabulary = Vocabulary.from_file(folder(tmp_path, tokenizer={"normalizer": {"type": "Sequence", "normalizers": steps}}))
    assert vocabulary.text_rules == TextRules(strip_accents=False, split_ideographs=False)
    assert caplog.messages == [f"{tmp_path / 'tokenizer.json'}: NFKC of its normalizer is not applied"]


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
@pytest.mark.parametrize("file", ["tokenizer_config", "tokenizer"])
def test_added_tokens_stay_whole(tmp_path, lower_case, file):
    pieces = [*WITHOUT_THE, "unused"]
    content = {
        "tokenizer_config": {"added_tokens_decoder": {str(one["id"]): one for one in ADDED}},
        "tokenizer": {"added_tokens": list(ADDED)},
    }
    vocabulary = Vocabulary.from_file(folder(tmp_path, pieces, **{file: content[file]}))
    assert vocabulary.tokens[len(pieces) :] == ("<e1>", "COVID-19", "the")
    ours, theirs = WordPieceTokenizer(vocabulary, lower_case=lower_case), oracle(pieces, lower_case, TextRules(), ADDED)
    for text in (*TEXTS, "", " ", "<e1>", "<e1><e1>\u4e2dthe them", "co\u00f6vid-19 covid-19"):
        expected, actual = theirs.encode(text, add_special_tokens=False), ours.tokenize(text)
        assert ours.ids(text) == [piece.id for piece in actual] == expected.ids
        assert [(piece.start, piece.end) for piece in actual] == expected.offsets


def test_a_list_of_added_tokens_alone_is_read_and_those_of_the_vocabulary_stay_whole_too(tmp_path):
    path = folder(tmp_path, added_tokens={"<e1>": len(PIECES), "un": PIECES.index("un"), "[CLS]": PIECES.index("[CLS]")})
    tokenizer = WordPieceTokenizer(Vocabulary.from_file(path))
    tokens = [piece.token for piece in tokenizer.tokenize("theun<e1> [CLS]")]
    assert tokens == ["the", "un", "<e1>", *[UNK] * 3]  # a special token in a text is words, as published


def test_files_of_a_vocabulary_give_it_back_and_its_fingerprint_tells_rules_apart(tmp_path):
    added = (Added("<e1>", len(PIECES)), Added("covid", len(PIECES) + 1, is_normalized=True, is_single_word=True))
    rules = TextRules(strip_accents=False, split_ideographs=False, added=added)
    vocabulary = Vocabulary([*PIECES, "<e1>", "covid"], rules=rules)
    for name, text in vocabulary.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    again = Vocabulary.from_file(tmp_path / "vocab.txt")
    assert (again.tokens, again.text_rules, again.fingerprint) == (vocabulary.tokens, rules, vocabulary.fingerprint)
    plain = Vocabulary(vocabulary.tokens)
    assert plain.fingerprint != vocabulary.fingerprint
    assert list(plain.files()) == ["vocab.txt"]


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
def test_an_exported_pipeline_keeps_the_rules(lower_case):
    vocabulary = Vocabulary([*PIECES, "<e1>"], rules=TextRules(not lower_case, False, (Added("<e1>", len(PIECES)),)))
    trained = SimpleNamespace(vocabulary=vocabulary, lower_case=lower_case, head=SimpleNamespace(kind="classification"))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json.content(trained)))
    ours = WordPieceTokenizer(vocabulary, lower_case=lower_case)
    for text in TEXTS:
        assert theirs.encode(text, add_special_tokens=False).ids == ours.ids(text)


BAD = [
    ("tokenizer_config", "{", "tokenizer_config.json:1: not JSON: Expecting property name enclosed in double quotes"),
    ("tokenizer", 3, "tokenizer.json: expected a JSON object"),
    ("tokenizer_config", [1], "tokenizer_config.json: expected a JSON object"),
    ("tokenizer_config", {"strip_accents": "no"}, "tokenizer_config.json: strip_accents is 'no', expected true, false or null"),
    ("tokenizer_config", {"word_tokenizer_type": "mecab"}, "word_tokenizer_type is 'mecab': of a vocab.txt only BERT's"),
    ("tokenizer_config", {"subword_tokenizer_type": "character"}, "subword_tokenizer_type is 'character': of a vocab.txt"),
    ("tokenizer_config", {"tokenizer_class": "RoFormerTokenizer"}, "tokenizer_class is 'RoFormerTokenizer': of a vocab.txt"),
    ("tokenizer_config", {"tokenize_chinese_chars": 1}, "tokenize_chinese_chars is 1, expected true or false"),
    (
        "tokenizer_config",
        {"added_tokens_decoder": {"-1": {"content": "x"}}},
        "an added token is None, expected one with content and id",
    ),
    ("tokenizer_config", {"added_tokens_decoder": {"9" * 5000: {"content": "x"}}}, "expected one with content and id"),
    ("tokenizer", {"added_tokens": {"x": 1}}, "an added token is None"),
    ("tokenizer", {"added_tokens": 5}, "the added tokens are no list"),
    ("tokenizer", {"added_tokens": [{"id": 20_000_000, "content": "x"}]}, "'x' has the id 20000000, but the pieces end at 18"),
    ("added_tokens", ["x"], "added_tokens.json: expected a JSON object"),
    ("added_tokens", {"x": 7}, "the added token 'x' has the id 7, which is 'CAFE' here"),
    ("added_tokens", {"x": -3}, "the added token 'x' has the id -3, expected a whole number"),
    ("added_tokens", {"x": 1.5}, "has the id 1.5"),
    ("added_tokens", {" ": 19}, "an added token is ' ', expected a text"),
    ("added_tokens", {"the": 19}, "'the' is already in line 19"),
    ("added_tokens", '{"\\ud800": 19}', "an added token is '\\ud800', expected a text"),
]


@pytest.mark.parametrize(("file", "content", "message"), BAD)
def test_a_value_that_no_tokenizer_has_is_one_line(tmp_path, file, content, message):
    path = folder(tmp_path, **{file: content})
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_files_that_disagree_are_refused(tmp_path):
    path = folder(tmp_path, added_tokens={"x": len(PIECES)}, tokenizer={"added_tokens": [{"id": 3, "content": "x"}]})
    with pytest.raises(VocabularyError, match="the added token 'x' has the ids 3 and 19"):
        Vocabulary.from_file(path)


def test_what_only_the_slow_tokenizers_apply_is_a_warning(tmp_path, caplog):
    folder(tmp_path, tokenizer_config={"do_basic_tokenize": True, "never_split": None})
    text_rules.read_rules(tmp_path)
    assert caplog.messages == []
    folder(tmp_path, tokenizer_config={"do_basic_tokenize": False, "never_split": ["un"]})
    text_rules.read_rules(tmp_path)
    said = "is not applied; the fast tokenizers of transformers do not apply it either"
    assert caplog.messages == [
        f"{tmp_path / 'tokenizer_config.json'}: {key} {said}" for key in ("do_basic_tokenize", "never_split")
    ]
