"""Tags of words: files, schemes, legal sequences, predictions; entities that are found, by hand and beside seqeval."""

import csv
import gzip
import io
import itertools
import json
import logging
import random
import re

import numpy as np
import pytest
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB2, IOBES
from sklearn.metrics import f1_score as of_classes

from bert_tf.errors import BertError
from bert_tf.extensions.tags import features as features_of_tags
from bert_tf.extensions.tags import predictions, schemes, words
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.extensions.tags.evaluation import evaluate
from bert_tf.extensions.tags.family import TagFamily, TagTask
from bert_tf.extensions.tags.predictions import TagPredictions
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from tests.extensions.tags.test_features import CONTROL, TOKENIZER
from tests.tasks.refusals import refusal

CONLL = "-DOCSTART- -X- O\n\nEU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\nBlackburn NNP I-PER\n"
_OF_X = {"labels": "O,B-X,I-X"}


# Files


def test_a_csv_of_words_is_refused(tmp_path):
    message = refusal(BertError, lambda: own(tmp_path, "word,tag\na,O\n", "train.csv")[0].examples("", "train"))
    assert message.endswith("words and tags are no CSV: write columns divided by tabs, a blank line after each sentence")


def test_comments_above_a_sentence_are_kept_aside_and_the_word_of_their_sign_is_a_word(tmp_path):
    task, path = own(tmp_path, "# id = 1\n# O\nEU B-X\n\n# text = one two three\nhi O\n")
    assert [example.words for example in task.examples("", "train")] == [("#", "EU"), ("hi",)]
    first, second = task.stream(path, "test")
    assert (first.before, second.before) == (("# id = 1",), ("# text = one two three",))


def test_of_conll_u_comments_ranges_and_empty_nodes_are_no_words_and_are_kept_in_predictions(tmp_path):
    """The comment has as many words as the file has columns; `1-2` is both words in one, `3.1` is none."""
    rows = ["# text = il", "1-2\tdu\t_\t_", "1\tde\tX\tADP", "2\tle\tX\tDET", "3\tvin\tX\tNOUN", "3.1\tbu\tX\tVERB"]
    text = "\n".join([*rows, "", "1\t2-3\tX\tNUM", ""])
    task, path = own(tmp_path, text, word_column=2, tag_column=4)
    examples = [(example.words, example.label) for example in task.examples("", "train")]
    assert examples == [(("de", "le", "vin"), ("ADP", "DET", "NOUN")), (("2-3",), ("NUM",))]
    predicted = list(task.stream(path, "test"))
    family = TagFamily(("O", "B-PER", "I-PER"))
    lines = family.layout("tsv").rows(predicted, said(predicted, family)).split("\n")
    assert [line.removesuffix("\tO") for line in lines[:-1]] == text.split("\n")[:-1]
    assert lines[1:3] == [rows[1], f"{rows[2]}\tO"]
    with pytest.raises(BertError, match="column 1 has the numbers of the words"):
        own(tmp_path, text)[0].examples("", "train")


def test_blanks_of_unicode_are_words(tmp_path):
    (example,) = own(tmp_path, "EU\tB-X\n\u00a0\tO\n\u3000\tO\n")[0].examples("", "train")
    assert example.words == ("EU", "\u00a0", "\u3000")
    text = json.dumps({"tokens": ["EU", "\u00a0"], "tags": ["B-X", "O"]}) + "\n"
    assert own(tmp_path, text, "a.jsonl")[0].examples("", "train")[0].words == ("EU", "\u00a0")


def test_words_and_tags_may_be_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as files

    files.write_table(pyarrow.table({"tokens": [["EU", "met"]], "tags": [["B-X", "O"]]}), tmp_path / "a.parquet")
    task = get_task("custom", of_values({"problem": "tags", "train_file": str(tmp_path / "a.parquet")}))
    assert [(one.words, one.label) for one in task.examples("", "train")] == [(("EU", "met"), ("B-X", "O"))]


def own(folder, text, name="train.txt", **settings):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return get_task("custom", of_values({"problem": "tags", "train_file": str(path), **settings})), path


@pytest.mark.parametrize(
    ("name", "text", "settings", "expected"),
    [
        ("a.txt", CONLL, {}, [("train-3", "EU rejects", "B-ORG O"), ("train-6", "Peter Blackburn", "B-PER I-PER")]),
        *(
            ("a.txt", "1\tNew_York\tB-LOC\r\n2\tsleeps\tO\r\n", {"word_column": word, "tag_column": tag},
             [("train-1", "New_York sleeps", "B-LOC O")])
            for word, tag in ((2, 3), (-2, -1), (2, -1))
        ),
        ("a.txt", "EU \tB-ORG \n rejects\t O\n", {}, [("train-1", "EU rejects", "B-ORG O")]),
        ("a.jsonl", '{"id": 7, "tokens": ["a", "b"], "tags": ["U-X", "O"]}\n', {}, [("7", "a b", "B-X O")]),
    ],
)  # fmt: skip
def test_files_of_words_and_tags(tmp_path, caplog, name, text, settings, expected):
    caplog.set_level(logging.INFO)
    examples = own(tmp_path, text, name, **settings)[0].examples("", "train")
    assert [(one.guid, " ".join(one.words), " ".join(one.label)) for one in examples] == expected
    assert ("tags in IOB1, converted to the scheme of the labels (2 words have another tag)" in caplog.text) is (text is CONLL)


def test_words_of_columns_by_tabs_may_have_blanks_and_files_may_be_packed_and_have_the_names_of_the_shared_task(tmp_path):
    task, path = own(tmp_path, "New York\tB-LOC\nx\tO\n")
    assert task.examples("", "train")[0].words == ("New York", "x")
    packed = path.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(task.stream(packed, "train")) == task.examples("", "train")
    for name in ("eng.testa", "train.txt", "dev.txt"):
        (tmp_path / name).write_text(CONLL)
    task = get_task("conll-2003")
    assert [task.file(tmp_path, split).name for split in ("train", "dev", "test")] == ["train.txt", "eng.testa", "eng.testb"]
    assert len(task.examples(tmp_path, "train")) == 2


@pytest.mark.parametrize(
    ("text", "dev", "listed", "labels"),
    [
        ("a DT\nb NN\nc NN\n", None, None, "NN DT"),  # the most frequent first
        ("a DT\nb NN\nc NN\n", "a XX\n", None, "NN DT XX"),
        ("a NN\nb P.B\nc VB\n", None, None, "NN P.B VB"),  # most do not look like those of entities
        ("a O\nb B-X\n", "a E-Y\nb ?\n", None, "O B-X I-X B-Y I-Y"),
        ("a S-X\nb O\n", None, None, "O B-X I-X"),
        ("a O\n", None, "O,S-X,E-X", "O B-X I-X"),
        ("a B-X\nb M-X\nc E-X\nd O\n", None, None, "O B-X I-X"),
        ("a B\nb M\nc E\nd S\n", None, None, "O B I"),
    ],
)
def test_labels_are_those_of_the_files_or_listed_in_any_scheme(tmp_path, text, dev, listed, labels):
    if dev:
        (tmp_path / "dev.txt").write_text(dev)
    family = own(tmp_path, text, labels=listed, dev_file=dev and str(tmp_path / "dev.txt"))[0].family
    assert " ".join(family.labels) == labels
    assert family.metrics[0] == ("entity_f1" if "O" in family.labels else "token_accuracy")


@pytest.mark.parametrize(
    ("text", "dev", "suspect"),
    [
        ("word pos\na DT\nb NN\nc NN\n", "d DT\n", "train.txt"),
        ("word pos\n\na DT\nb NN\n", "d DT\n", "train.txt"),
        ("a DT\nb NN\nc DT\n", "word pos\nd DT\n", "dev.txt"),
        ("a UH\nb NN\nc UH\n", "d UH\n", None),
        ("a B-X\nb O\n", "d O\n", None),
    ],
)
def test_a_header_is_suspected_by_its_tag(tmp_path, caplog, text, dev, suspect):
    (tmp_path / "dev.txt").write_text(dev)
    assert own(tmp_path, text, dev_file=str(tmp_path / "dev.txt"))[0].family.labels
    hint = "if the first line is a header, delete it, else list all tags with --labels"
    said = [f"{tmp_path / suspect}: the first tag, 'pos', occurs nowhere else; {hint}"] if suspect else []
    assert caplog.messages == said


def test_plain_tags_are_not_constrained(tmp_path):
    task, _ = own(tmp_path, "a NN\nb DT\n", constrained_decoding=True)
    with pytest.raises(BertError, match="^--constrained_decoding: is for tags of entities; any plain tag may follow another"):
        _ = task.family
    with pytest.raises(BertError, match="^--constrained_decoding: is for tags of entities"):
        TagTask(train=[(["a", "b"], ["NN", "DT"])], constrained_decoding=True)


def test_to_predict_lines_are_kept_and_a_row_that_is_skipped_takes_its_sentence_along(tmp_path):
    task, path = own(tmp_path, CONLL)
    path.write_text("\n\nEU NNP\n\n-DOCSTART- x\n\nhi there\n\n\n")
    first, second, rest = task.stream(path, "test")
    assert (first.before, first.lines, first.after) == (("", ""), ("EU NNP",), ("",))
    assert (second.before, second.words, second.label) == (("-DOCSTART- x", ""), ("hi",), None)
    assert (rest.words, rest.before) == ((), ("",))
    path.write_bytes(b"a x\n\nb x\n\xff x\nc x\n\nd x\n")
    problems = []
    assert [example.words for example in task.stream(path, "test", problems.append)] == [("a",), ("d",)]
    assert [str(problem).partition(": not UTF-8")[0] for problem in problems] == [f"{path}:4"]


def test_texts_that_are_read_as_rows_of_words_name_the_flag(tmp_path):
    task, _ = own(tmp_path, CONLL)
    (tmp_path / "plain.txt").write_text("Mara flew to Tovik\nAnna slept\n")
    problems = []
    list(task.stream(tmp_path / "plain.txt", "test", problems.append))
    assert str(problems[0]).endswith(
        "2: 2 columns, expected 4, as in the first row; if lines are texts, not words, add --raw_text"
    )


def test_texts_to_predict_become_words_with_their_characters(tmp_path):
    task, path = own(tmp_path, CONLL, raw_text=True)
    path.write_bytes(b"Hi, Bo\n\n\xff\n")
    problems = []
    first, second = task.stream(path, "test", problems.append)
    assert (first.words, first.offsets, len(problems)) == (("Hi", ",", "Bo"), ((0, 2), (2, 3), (4, 6)), 1)
    assert second.words == ()
    objects = path.with_suffix(".jsonl")
    objects.write_text('{"text": "Hi, Bo"}\n')
    for raw_text in (False, True):
        (example,) = own(tmp_path, CONLL, raw_text=raw_text)[0].stream(objects, "test")
        assert (example.text, example.words) == ("Hi, Bo", ("Hi", ",", "Bo"))
    objects.write_text('{"tokens": ["Hi", "Bo"], "id": 3}\n')
    (example,) = own(tmp_path, CONLL)[0].stream(objects, "test")
    assert (example.guid, example.words) == ("3", ("Hi", "Bo"))


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        ("a b O\na O\n", {}, "2: 2 columns, expected 3"),
        ("a O\n", {"tag_column": 3}, "1: no column 3 for the tags, there are 2; name it with --tag_column"),
        ("a O\n", {"word_column": -3}, "1: no column -3 for the words"),
        ("a\n", {}, "1: one column for words and tags"),
        ("a\tO\n\tO\n", {}, "2: column 1, of the words, is empty"),
        ("a O\n\nb B-X\nc X\n", _OF_X, "4: the tag 'X' is neither O nor of an entity, as B-X"),
        ("a O\nb I-Y\n", _OF_X, "2: unknown label 'B-Y'; known are O, B-X, I-X; if it is intended, list"),
        ("a DT\nb XX\n", {"labels": "NN,DT"}, "2: unknown label 'XX'"),
        (
            "word pos\nb DT\n",
            {"labels": "NN,DT"},
            "list all tags with --labels (of --task_name=custom); if this line is a header, del",
        ),
        (
            "word pos\nb O\n",
            _OF_X,
            "1: the tag 'pos' is neither O nor of an entity, as B-X; correct it, or if the tags are plain, "
            "list all with --labels (of --task_name=custom); if this line is a header, delete it",
        ),
        ("a O\nb O\n", {}, "train.txt: every word has the tag 'O'; at least two tags are required"),
        ("a B-X\nb O\n", {"word_column": 0}, "--word_column=0: columns are counted from 1"),
        ('{"tokens": ["a", "b"], "tags": ["X", "O"]}', {"word_column": 2}, "--word_column: {path} has objects, whose words"),
        (
            "a B-X\nb O\n",
            {"file_format": "csv"},
            "--file_format=csv: words and tags are in columns (tsv), in jsonl or in parquet",
        ),
        ('{"tokens": ["a"], "tags": ["O", "O"]}', _OF_X, "1: 1 words and 2 tags"),
        ('{"tokens": [], "tags": []}', _OF_X, "1: no words in 'tokens'"),
        ('{"tokens": "a", "tags": ["O"]}', _OF_X, "1: the value of 'tokens' is not a list"),
        ('{"tokens": ["a", 3], "tags": ["O", "O"]}', _OF_X, "1: the value in column 'tokens' is not a string: 3"),
        ('{"tokens": [" "], "tags": ["O"]}', _OF_X, "1: a word in 'tokens' is empty"),
        ('{"tokens": ["a"]}', _OF_X, "1: no column 'tags'"),
        (
            "a B-X\nb 0\n",
            {},
            "2: the tag '0' is neither O nor of an entity, as B-X; correct it, or if the tags are plain, list",
        ),
        ("a B-X\nb -\nc _\n", {}, "2: the tag '-' is neither O nor of an entity, as B-X"),
        ("a B_X\nb O\n", {}, "train.txt: tags of entities, as B_X, have no hyphen: write B-PER; if they are plain tags, list"),
        ("a b-X\nb o\n", {}, "train.txt: tags of entities, as b-X, begin with a small letter"),
        ("a X-B\nb X-I\nc O\n", {}, "train.txt: tags of entities, as X-B, X-I, have the letter at the end"),
        ('{"tokens": ["a", "b"], "ner_tags": [3, 0]}', {}, "train.jsonl: every tag is a number, as 0, 3: write the names"),
        ("a DT\nb nan\n", {}, "train.txt: the tag 'nan' stands for a missing value"),
        ("a\tO\nb\tB-X\t\n", {}, "2: 3 columns, expected 2, as in the first row; the last is empty: delete the tab at the end"),
        ("1\ta\tO\n2\tb\tB-X\n3\tc\tO\n", {}, "1: column 1 has the numbers of the words: name that of the words with --word"),
        ('{"tokens": ["a"], "tags": ["B-Y"]}', _OF_X, "1: unknown label 'B-Y'"),
    ],
)
def test_bad_files_end_in_one_line(tmp_path, text, settings, problem):
    name = "train.jsonl" if text[:1] == "{" else "train.txt"
    message = refusal(BertError, lambda: own(tmp_path, text, name, **settings)[0].examples("", "train"))
    assert problem.replace("{path}", str(tmp_path / name)) in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mara Jelen met Vint.", "Mara|Jelen|met|Vint|."),
        ("(U.S. troops)", "(|U.S.|troops|)"),
        ("J. Smith's 1,000 euros", "J.|Smith|'s|1,000|euros"),
        ("don\u2019t say O'Neill", "don|\u2019t|say|O'Neill"),
        ("3:2 against AC-Milan: a win, he said", "3:2|against|AC-Milan|:|a|win|,|he|said"),
        ("one,two", "one|,|two"),
        ("\u5317\u4eac2008", "\u5317|\u4eac|2008"),
        ("e\u0301te\u0301 !?", "e\u0301te\u0301|!|?"),
        (" \t\n", ""),
        ("Dr. No", "Dr.|No"),
        ("a.b,c 'd' e's f-g- .. \u20ac5.00/kg\u00a0x", "a.b|,|c|'d|'|e|'s|f-g|-|.|.|\u20ac|5.00/kg|x"),
    ],
)
def test_words_end_at_blanks_and_punctuation(text, expected):
    assert "|".join(text[start:end] for start, end in words.split(text)) == expected


# Schemes

SAME = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-ORG I-ORG I-ORG",
    "IOB2": "B-PER I-PER B-PER O B-LOC B-ORG I-ORG I-ORG",
    "IOBES": "B-PER E-PER S-PER O S-LOC B-ORG I-ORG E-ORG",
    "BILOU": "B-PER L-PER U-PER O U-LOC B-ORG I-ORG L-ORG",
}


@pytest.mark.parametrize("scheme", SAME)
def test_every_scheme_becomes_iob2_and_is_known_by_what_occurs(scheme):
    assert schemes.to_iob2(SAME[scheme].split()) == tuple(SAME["IOB2"].split())
    seen = schemes.Seen()
    seen.add(SAME[scheme].split(), SAME["IOB2"].split())
    assert seen.scheme == scheme
    assert schemes.in_scheme_of(SAME[scheme].split(), SAME["IOB2"].split()) == tuple(SAME[scheme].split())


def test_types_end_entities_and_may_be_missing_and_plain_tags_are_no_entities():
    seen = schemes.Seen()
    for tags in (("B-PER", "O"), ("I-PER", "O")):
        seen.add(tags, schemes.to_iob2(tags))
    assert (seen.scheme, seen.changed) == ("a mixture of IOB1 and IOB2", 1)
    converted = {"I-PER I-LOC": "B-PER B-LOC", "B I O B": "B I O B", "I-A-B I-A-B": "B-A-B I-A-B", "": ""}
    assert {tags: " ".join(schemes.to_iob2(tags.split())) for tags in converted} == converted
    are_of_entities = {"O B-PER": True, "B I O": True, "O": False, "NN IN": False, "O I-PER NN": False}
    assert {tags: schemes.are_of_entities(tags.split()) for tags in are_of_entities} == are_of_entities


# Legal sequences

LABELS = schemes.labels_of(["S-LOC", "O", "E-ORG", "B-PER"])
LEGAL = schemes.legal_of(LABELS)


def test_what_is_legal_in_iob2():
    assert LABELS == ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER")
    assert LEGAL.first.tolist() == [True, True, False, True, False, True, False]
    assert LEGAL.after[:, 2].tolist() == [False, True, True, False, False, False, False]
    assert LEGAL.after[:, [0, 1, 3, 5]].all()
    tags = np.array([2, 2, 1, 2, 4, 1, 2])  # I-LOC I-LOC | B-LOC I-LOC I-ORG | B-LOC I-LOC
    illegal = schemes.is_illegal(tags, np.array([2, 0, 3, 2, 0]), LEGAL)
    assert illegal.tolist() == [True, False, False, False, True, False, False]


@pytest.mark.parametrize("together", [1, 1 << 9, 1 << 21])
@pytest.mark.parametrize(
    ("labels", "sequence"),
    [
        (LABELS, r"(O |B-(\w+) (I-\2 )*)*"),
        (tuple("O B-X I-X E-X S-X B-Y E-Y".split()), r"(O |S-X |B-(\w+) (I-\2 )*E-\2 )*"),
        (tuple("O I-X E-X I-Y E-Y I-Z E-Z".split()), r"(O |E-\w |I-(\w) (I-\2 )*E-\2 )*"),
        (tuple("O B-X I-X E-X S-X I-Y E-Y".split()), r"(O |S-X |E-\w |[BI]-(\w) (I-\2 )*E-\2 )*"),
    ],
)
def test_viterbi_finds_what_trying_all_sequences_finds(labels, sequence, together, monkeypatch):
    monkeypatch.setattr(schemes, "_PAIRS", together)
    lengths = np.random.default_rng(1).integers(0, 4, 60)
    scores = np.random.default_rng(2).normal(scale=9.0, size=[lengths.sum(), 7])
    expected = []
    for part in np.split(scores, np.cumsum(lengths)[:-1]):
        sequences = itertools.product(range(7), repeat=len(part))
        legal = [tags for tags in sequences if re.fullmatch(sequence, "".join(f"{labels[tag]} " for tag in tags))]
        expected += max(legal, key=lambda tags, part=part: part[range(len(tags)), tags].sum())
    decoded = schemes.viterbi(scores, lengths, schemes.legal_of(labels))
    assert decoded.tolist() == expected
    assert not schemes.is_illegal(decoded, lengths, schemes.legal_of(labels)).any()


# Predictions

FAMILY = TagFamily(("O", "B-PER", "I-PER"))


def said(examples, family=FAMILY, *, limit=16):
    """Returns predictions of a model that says B-PER of the words that begin with a, and I-PER of those with b."""
    of_each = [example.words for example in examples]
    numbers = np.zeros(sum(map(len, of_each)), np.int32)
    features = features_of_tags.build(of_each, numbers, TOKENIZER, max_seq_length=limit)
    pieces = [TOKENIZER.vocabulary.tokens[number] for number in features.token_ids]
    known = {"a": 1, "b": 2}
    logits = np.array([[2.0 * (label == known.get(piece, 0)) for label in range(3)] for piece in pieces], np.float32)
    return family.predictions({"logits": logits}, features, examples)


def sentence(text):
    return TagExample("test-1", tuple(text.split(" ")))


@pytest.mark.parametrize(
    ("text", "labels", "constrained", "expected"),
    [
        ("c ax b c", "O B-PER I-PER", False, "O B-PER I-PER O"),
        ("c ax " * 30 + "c", "O B-PER I-PER", False, "O B-PER " * 30 + "O"),  # whatever the limit
        (f"a {CONTROL} b", "O B-PER I-PER", False, "B-PER O I-PER"),  # a word without pieces has the usual tag
        (f"a {CONTROL} b", "NN DT VB", False, "DT NN VB"),
        (f"a {CONTROL} b", "B-PER I-PER O", False, "I-PER O O"),  # wherever it stands
        ("b b", "O B-PER I-PER", False, "I-PER I-PER"),
        ("b b", "O B-PER I-PER", True, "B-PER I-PER"),
    ],
)
def test_every_word_has_a_tag(text, labels, constrained, expected):
    family = TagFamily.from_record({"labels": labels.split(), "kind": "tags", "constrained_decoding": constrained})
    (prediction,) = family.listed(said([sentence(text)], family), [sentence(text)])
    assert prediction.label == tuple(expected.split())


def test_entities_have_words_and_characters_and_decoded_is_the_same_in_parts():
    (prediction,) = FAMILY.listed(said([sentence("c ax b c")]), [sentence("c ax b c")])
    (entity,) = prediction.entities
    assert entity == predictions.Entity("PER", "ax b", 2, 6, 1, 3, pytest.approx(np.exp(2) / (np.exp(2) + 2)))
    examples = [sentence("a b c"), sentence("b a"), sentence("c")]
    whole = predictions.decoded(said(examples), FAMILY.labels, constrained=True)
    parts = [predictions.decoded(said([one]), FAMILY.labels, constrained=True) for one in examples]
    assert whole.tolist() == np.concatenate(parts).tolist()


def test_layouts_of_columns_csv_and_json():
    examples = [  # a column file keeps its lines
        TagExample("1", ("a",), lines=("a\tx",), before=("-DOCSTART-\tO", ""), after=("",)),
        TagExample("2", ("c", "b"), lines=("c x ", "b x")),
        TagExample("end", (), before=("",)),
    ]
    text = FAMILY.layout("tsv").rows(examples, said(examples))
    assert text == "-DOCSTART-\tO\n\na\tx\tB-PER\n\nc x O\nb x I-PER\n\n"
    assert FAMILY.layout("tsv").rows([sentence("a c")], said([sentence("a c")])) == "a\tB-PER\nc\tO\n\n"
    layout, example = FAMILY.layout("csv"), sentence("a ,")
    rows = list(csv.reader(io.StringIO(layout.header() + layout.rows([example], said([example])))))
    assert rows[0] == ["id", "word_number", "word", "tag", "score"]
    assert [row[:4] for row in rows[1:]] == [["test-1", "0", "a", "B-PER"], ["test-1", "1", ",", "O"]]
    (example,) = FAMILY.from_rows(["c, ax b!"], "test", labelled=False)
    written = json.loads(FAMILY.layout("jsonl").rows([example], said([example])))
    assert (written["text"], written["tokens"]) == ("c, ax b!", ["c", ",", "ax", "b", "!"])
    assert [(one["type"], one["start"], one["end"]) for one in written["entities"]] == [("PER", 3, 7)]


# Evaluation

PLAIN = ("NN", "DT", "VB")
THERE = ["B-PER I-PER O B-LOC O", "B-ORG O B-LOC I-LOC I-LOC", "B-PER O O B-ORG", "O O"]
FOUND = ["B-PER I-PER O B-ORG O", "O O B-LOC I-LOC O", "I-PER O O I-LOC", "B-LOC O"]


def sentences(tags):
    """Returns examples with tags, written with blanks between them, of words w0, w1, ..."""
    split = [tuple(of_one.split()) for of_one in tags]
    return [TagExample(f"dev-{n}", tuple(f"w{at}" for at in range(len(one))), one) for n, one in enumerate(split)]


def predicted(tags, labels=LABELS, *, margin=4.0):
    """Returns predictions whose greedy decoding is the tags."""
    lengths = np.array([len(of_one.split()) for of_one in tags])
    numbers = [labels.index(tag) for of_one in tags for tag in of_one.split()]
    return TagPredictions(np.eye(len(labels), dtype=np.float32)[numbers] * margin, np.ones(len(numbers), bool), lengths)


def measured(there, guesses, labels=LABELS):
    return evaluate(predicted(guesses, labels), sentences(there), labels, constrained=False)


def panel(evaluation, title):
    (only,) = (one for one in evaluation.panels if one.title == title)
    return {row[0]: row[1:] for row in only.rows}


def test_entities_count_where_they_are_whole_and_errors_are_of_five_kinds():
    evaluation = measured(THERE, FOUND)
    values = evaluation.metrics
    assert values["entity_precision"] == pytest.approx(2 / 6)  # B-PER I-PER and, not strictly, I-PER
    assert values["entity_recall"] == pytest.approx(2 / 6)
    assert values["entity_f1_strict"] == pytest.approx(2 * 1 / (6 + 4))
    assert values["token_accuracy"] == pytest.approx(10 / 16)
    rows = {label: tuple(values) for label, *values in map(dict.values, evaluation.more["per_class"])}
    assert (rows["PER"], rows["LOC"]) == ((1.0, 1.0, 1.0, 2), (0.0, 0.0, 0.0, 2))
    longer = measured([*THERE, "B-PER" + " O" * 10], [*FOUND, "B-PER" + " O" * 10])
    assert panel(longer, "By length of sentence") == {"1 to 5": [4, 6, pytest.approx(1 / 3)], "11 to 20": [1, 1, 1.0]}
    wrong = panel(evaluation, "Errors by kind")
    assert [(kind, row[0]) for kind, row in wrong.items()] == [
        *(("missed", 1), ("invented", 1), ("wrong type", 2), ("wrong border", 1), ("wrong type and border", 0))
    ]
    assert wrong["wrong border"][1:] == ["LOC 1", "w2 w3 w4 (LOC) → w2 w3 (LOC)"]
    assert wrong["invented"][2] == "nothing → w0 (LOC)"
    wrong = panel(measured(["B-PER I-PER O"], ["O B-LOC I-LOC"]), "Errors by kind")
    assert wrong["wrong type and border"][2] == "w0 w1 (PER) → w1 w2 (LOC)"
    assert wrong["invented"][0] == wrong["missed"][0] == 0


def test_entities_are_those_of_seqeval():
    rng = random.Random(3)
    tags = ["O", *(f"{letter}{rest}" for letter in "BIES" for rest in ("", "-X", "-Y-Z"))]
    for _ in range(3000):
        row = rng.choices(tags, k=rng.randint(0, 9))
        expected = [("" if kind == "_" else kind, first, last + 1) for kind, first, last in get_entities(row)]
        assert schemes.entities_of(row) == expected, row


@pytest.mark.parametrize(("letters", "scheme"), [("BI", IOB2), ("BIES", IOBES), ("BILU", BILOU)])
def test_figures_are_those_of_seqeval(letters, scheme):
    random, labels = np.random.default_rng(3), ("O", *(f"{letter}-{kind}" for kind in ("LOC", "PER") for letter in letters))
    sizes = random.integers(1, 20, 200)
    guessed, there = ([random.choice(labels, size).tolist() for size in sizes] for _ in range(2))
    there = [list(schemes.in_scheme_of(labels, tags)) for tags in there]
    there[::2] = [list(schemes.in_scheme_of(labels, tags)) for tags in guessed[::2]]  # else nearly none is right
    values = measured(list(map(" ".join, there)), list(map(" ".join, guessed)), labels).metrics
    assert values["entity_f1_strict"] == pytest.approx(f1_score(there, guessed, mode="strict", scheme=scheme))
    if scheme is not BILOU:  # which seqeval reads in strict mode only
        assert values["entity_f1"] == pytest.approx(f1_score(there, guessed))
        assert values["entity_precision"] == pytest.approx(precision_score(there, guessed))
        assert values["entity_recall"] == pytest.approx(recall_score(there, guessed))


@pytest.mark.parametrize(
    ("labels", "tags"),
    [
        ("B-LOC I-LOC I-PER O", "I-PER I-PER O I-LOC B-LOC"),  # IOB1, without two persons side by side
        ("O B-PER I-PER E-PER S-PER S-LOC", "B-PER E-PER O S-LOC S-LOC"),
    ],
)
@pytest.mark.parametrize("constrained", [False, True])
def test_a_model_of_another_scheme_is_measured_and_decoded_in_it(labels, tags, constrained):
    labels, given = tuple(labels.split()), "B-PER I-PER O B-LOC B-LOC".split()
    examples = TagFamily(labels).from_rows([([f"w{at}" for at in range(5)], given)], "dev", labelled=True)
    assert examples[0].label == tuple(tags.split())
    evaluation = evaluate(predicted([tags], labels), examples, labels, constrained=constrained)
    assert set(evaluation.metrics.values()) == {1.0}
    assert evaluation.details()["decoding"]["each word by itself"]["illegal_tags"] == 0


def test_plain_tags_have_accuracy_and_macro_f1_and_intervals_narrow_with_more_sentences():
    there, guessed = ["NN DT VB VB", "DT"], ["NN DT VB NN", "NN"]
    evaluation = measured(there, guessed, PLAIN)
    expected = of_classes(" ".join(there).split(), " ".join(guessed).split(), average="macro")
    assert evaluation.metrics == {"token_accuracy": pytest.approx(3 / 5), "macro_f1": pytest.approx(expected)}
    assert [panel.title for panel in evaluation.panels] == ["Most frequent confusions", "By length of sentence"]
    few, many = (measured(THERE * times, FOUND * times).intervals["entity_f1"] for times in (5, 50))
    assert few[0] < many[0] < 1 / 3 < many[1] < few[1]


def test_the_gain_of_constrained_decoding_is_shown():
    guess = predicted(["B-PER I-LOC O"])
    guess.logits[1, LABELS.index("I-PER")] = 3.0
    for constrained in (False, True):
        evaluation = evaluate(guess, sentences(["B-PER I-PER O"]), LABELS, constrained=constrained)
        assert evaluation.metrics["entity_f1"] == constrained
        assert evaluation.details()["decoding"] == {
            "each word by itself": {"entity_f1": 0.0, "entity_f1_strict": 0.0, "illegal_tags": 1},
            "constrained": {"entity_f1": 1.0, "entity_f1_strict": 1.0, "illegal_tags": 0},
        }


def test_the_loss_is_a_mean_over_words_that_were_read_and_what_learned_nothing_is_said():
    guess = predicted(["O O O"], margin=0.0)
    guess.logits[2] = 50.0 * np.eye(len(LABELS))[1]
    guess.read[2] = False
    assert evaluate(guess, sentences(["O O O"]), LABELS, constrained=False).loss == pytest.approx(np.log(len(LABELS)))
    assert measured(THERE, ["O " * len(tags.split()) for tags in THERE]).collapsed == "no entity is predicted"
    assert "the most frequent tag alone gives 2" in measured(["NN NN DT"], ["NN NN NN"], PLAIN).collapsed
    assert measured(THERE, THERE).collapsed is None
    assert measured(["NN NN"], ["NN NN"], PLAIN).collapsed is None  # as of equal labels nothing can be told


def test_mistakes_are_marked_in_the_text():
    examples = sentences(THERE)
    listed = predictions.listed(predicted(FOUND), examples, LABELS, constrained=False)
    worst = {one["id"]: one for one in predictions.most_confident(examples, listed)}
    assert set(worst) == {"dev-0", "dev-1", "dev-2", "dev-3"}
    assert (worst["dev-1"]["label"], worst["dev-1"]["predicted"]) == (["w0: ORG", "w2 w3 w4: LOC"], ["w2 w3: LOC"])
    assert worst["dev-1"]["marks"] == [(0, 2, "label"), (6, 11, "both"), (12, 14, "label")]
    assert worst["dev-0"]["marks"] == [(0, 5, "both"), (9, 11, "predicted")]
    assert worst["dev-3"]["marks"] == [(0, 2, "predicted")]
