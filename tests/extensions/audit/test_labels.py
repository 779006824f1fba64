"""Which labels are called wrong, by probabilities of the classes; which rows are duplicates, by their words and letters."""

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.audit import duplicates, findings, labels, predictions, texts
from bert_tf.extensions.audit.findings import row_of
from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.extensions.span.reader import Answer, SpanExample
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.extensions.tags.family import TagFamily
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


def test_a_label_is_wrong_if_another_class_is_surely_as_probable_as_for_its_own_rows():
    given = np.array([0, 0, 0, 1, 1, 1])
    first = np.array(
        [0.9, 0.8, 0.1, 0.2, 0.45, 0.7]
    )  # thresholds: 0.6 of the first, (0.8 + 0.55 + 0.3) / 3 = 0.55 of the other
    assert labels.flagged(given, np.stack([first, 1 - first], axis=1)).tolist() == [False, False, True, False, False, True]
    given = np.array([0, 0, 1, 1])
    first = np.array([0.9, 0.45, 0.1, 0.1])  # the second leans to a class whose threshold is 0.9
    assert not labels.flagged(given, np.stack([first, 1 - first], axis=1)).any()
    applies = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    probabilities = np.array([[0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.95, 0.1]])
    # Thresholds of the first label: 0.9 if it applies, (0.9 + 0.05) / 2 if not.
    assert labels.multi_label_issues(applies, probabilities, ("a", "b"), "|") == [labels.Issue(3, pytest.approx(0.05), "a")]


def test_a_number_far_from_its_prediction_a_sentence_by_its_worst_word_and_answers_by_disagreement():
    given = np.arange(20.0)
    predicted = given + np.tile([0.1, -0.1], 10)
    predicted[7] = 1.0
    (issue,) = labels.number_issues(given, predicted)
    assert (issue.row, issue.suggested) == (7, "1")
    probabilities = np.array([0.2, 0.8])
    assert labels.option_issues([0, 1], [probabilities, probabilities]) == [labels.Issue(0, 0.2, "1")]
    answered = [SpanExample(str(n), "q", "a red fox", (Answer(text, 2),)) for n, text in enumerate(("red", "Red Fox"))]
    cells = {"answer": "red fox", "probability": "0.75"}
    assert labels.answer_issues(answered, [cells, cells]) == [labels.Issue(0, 0.25, "red fox")]
    rows = [TagExample("1", ("a", "b"), ("O", "X")), TagExample("2", ("c", "d"), ("X", "O"))]
    predicted = [{"tags": "O X", "scores": "0.9 0.8"}, {"tags": ["O", "O"], "scores": [0.95, 0.9]}]
    # The mean of O is 0.9 (twice 0.9, as the 0.95 is of an X), that of X (0.8 + 0.05) / 2.
    assert labels.tag_issues(rows, predicted) == [labels.Issue(1, pytest.approx(0.05), "O O")]


def test_outputs_of_several_runs_are_averaged_but_tags_refused():
    options = [ChoiceExample("1", "c", "q", ("x", "y"), 0)]
    runs = [[{"probabilities": "0.4 0.6"}], [{"probabilities": [0.3, 0.7]}]]
    assert labels.from_predictions(ChoiceFamily(), options, runs) == [labels.Issue(0, pytest.approx(0.35), "1")]
    numbers = [SentenceExample(str(n), "t", None, float(n)) for n in range(9)]
    runs = [[{"score": n + error * (n % 3) + 5 * (n == 4)} for n in range(9)] for error in (0.1, 0.3)]
    (issue,) = labels.from_predictions(SentenceFamily((), kind=REGRESSION), numbers, runs)
    assert (issue.row, issue.suggested) == (4, "8")  # 9.2, above the highest label
    with pytest.raises(ValueError, match="only those of one run"):
        labels.from_predictions(TagFamily(("O", "X")), [], [[], []])


def test_a_linear_model_finds_flipped_labels_without_having_seen_the_row():
    vectors = np.random.default_rng(0).normal(size=(100, 4)) * 0.01 + np.repeat([[1.0], [-1.0]], 50, axis=0)
    given = ["a"] * 50 + ["b"] * 50
    given[3], given[70] = "b", "a"
    rows = [SentenceExample(str(n), "t", None, label) for n, label in enumerate(given)]
    issues = labels.from_vectors(SentenceFamily(("a", "b", "never")), rows, np.stack([vectors, 0 * vectors], axis=1))
    assert [(issue.row, issue.suggested) for issue in issues] == [(3, "a"), (70, "b")]
    from sklearn.linear_model import Ridge

    random = np.random.default_rng(0)
    inputs, targets = random.normal(size=(12, 3)), random.normal(size=(12, 2))
    others = np.arange(12) != 5
    expected = Ridge(alpha=labels._RIDGE).fit(inputs[others], targets[others]).predict(inputs[5:6])[0]
    assert labels.without_row(inputs, targets)[5] == pytest.approx(expected)


def rows(*given):
    """Rows of (split, text, label), named by their number."""
    return [
        row_of(split, SentenceExample(str(n), text, None, label), is_train=split == "train")
        for n, (split, text, label) in enumerate(given)
    ]


def exact(*given):
    return exact_of(rows(*given))


def exact_of(some_rows):
    return [(one.problem, one.row.name, one.other.name) for one in duplicates.exact(some_rows, duplicates.keys(some_rows))]


@pytest.mark.parametrize(
    "text", ["He  left!", "HE LEFT", "\uff28e\u00a0left.", '"He left", ...', "``He left''", "_He_\u00b4left\ufe0f\u200b"]
)
def test_case_punctuation_blanks_and_forms_do_not_count(text):
    assert duplicates.normalized(text) == "he left"
    assert duplicates.normalized(":-)") != duplicates.normalized(":-(")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("वह जाता है", "वह जाती है"),
        ("เสือ", "เสื้อ"),
        ("Great 👍", "Great 👎!"),
        ("Great 👍🏻", "Great 👍🏿"),
        ("C is fast", "C++ is fast"),
        ("=)", "=("),
    ],
)
def test_vowel_signs_and_symbols_count(one, other):
    assert exact(("train", one, "a"), ("train", other, "a")) == []
    assert exact(("train", one, "a"), ("train", f" {one}", "a")) == [("duplicate", "train:1", "train:0")]


def test_duplicates_contradictions_and_leaks():
    issues = exact(
        ("train", "one", "a"), ("train", "One.", "a"), ("train", "one", "b"), ("train", "two", "a"), ("dev", "Two", "b")
    )
    assert issues == [
        ("duplicate", "train:1", "train:0"),
        ("contradiction", "train:2", "train:0"),
        ("leak", "train:3", "dev:4"),
        ("contradiction", "dev:4", "train:3"),
    ]
    assert exact(("train", "one", "a"), ("test", "one", None)) == [("leak", "train:0", "test:1")]
    assert exact(("train", "one", ("a", "b")), ("train", "one", ("b", "a"))) == [("duplicate", "train:1", "train:0")]
    tagged = [TagExample(str(n), ("one", "two"), tags) for n, tags in enumerate([("X", "O"), ("O", "X")])]
    tagged = [row_of("train", example, is_train=True) for example in tagged]
    assert exact_of(tagged) == [("contradiction", "train:1", "train:0")]


@pytest.mark.parametrize(("suggested", "action"), [("b", "relabel"), ("", "relabel"), (None, "")])
def test_no_label_is_a_proposal_and_no_proposal_is_none(suggested, action):
    finding = findings.Finding(findings.LABEL, 0.1, rows(("train", "one", ("a",)))[0], suggested)
    cells = dict(zip(findings.COLUMNS, finding.cells(",")))
    assert (cells["suggested"], cells["action"]) == (suggested or "", action)


def test_texts_that_are_read_in_windows_are_not_truncated():
    tokenizer = WordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]), lower_case=True)
    long_rows = rows(("train", "a a a a", "X"))
    for family, problems in ((SentenceFamily(("X",)), ["truncated"]), (TagFamily(("O", "X")), [])):
        assert [finding.problem for finding in texts.unreadable(long_rows, family, tokenizer, 4)] == problems


def test_rows_without_predictions_and_rows_that_had_another_label_are_said(tmp_path):
    examples = [SentenceExample(f"train-{n}", "t", None, "ab"[n % 2]) for n in range(4)]
    lines = [f"train-{n}\t0.9\t0.1\t{label}\n" for n, label in enumerate("aaa")]
    (tmp_path / "p.tsv").write_text("id\tprobability_a\tprobability_b\ttrue_label\n" + "".join(lines))
    _, notes = predictions.issues(str(tmp_path / "p.tsv"), SentenceFamily(("a", "b")), examples)
    assert notes == [
        f"{tmp_path}/p.tsv: 1 of 3 rows had another label then; if rows were added or removed since, predict them again"
        " (ids are numbers of lines, without --id_column)",
        "only 3 of 4 labelled rows have predictions; the others are not judged",
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("p.csv", "id,word_number,word,tag,score\n1,0,one,O,0.9\n1,1,two,X,0.9\n", ":1: no column 'tags'"),
        ("p.tsv", "one\tO\ntwo\tX\n", ":1: no column 'tags'"),
        ("p.conll", "one O\ntwo X\n", ": unknown format of this file name"),
    ],
)
def test_predictions_by_word_are_refused_with_a_format_that_is_by_sentence(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    rows = [TagExample("1", ("one", "two"), ("O", "O"))]
    with pytest.raises(DataError, match=f"^{tmp_path}/{name}{problem}; predict into .jsonl, or name a run with --folds"):
        predictions.issues(f"{tmp_path}/{name}", TagFamily(("O", "X")), rows)


def test_tags_with_blanks_are_refused_where_blanks_divide_tags(tmp_path):
    family, rows = TagFamily(("noun", "proper noun")), [TagExample("1", ("one", "two"), ("noun", "proper noun"))]
    (tmp_path / "out_of_fold.tsv").write_text("id\ttags\tscores\n1\tnoun proper noun\t0.9 0.9\n")
    problem = "the tag 'proper noun' holds a blank, and blanks divide the tags of this file"
    with pytest.raises(DataError, match=f"^{tmp_path}/out_of_fold.tsv: {problem}; predict into .jsonl, or rename the tag in"):
        predictions.issues(str(tmp_path), family, rows)
    (tmp_path / "p.jsonl").write_text('{"id": "1", "tags": ["noun", "proper noun"], "scores": [0.9, 0.9]}\n')
    assert predictions.issues(f"{tmp_path}/p.jsonl", family, rows) == ([], [])


def share(one, other):
    return [share for _, _, share in duplicates.similar([one, other], 0.01, np.array([True, True]))]


def test_overlap_of_words_or_letters_of_the_text_that_shares_less():
    assert share(("aa b c d e f", ""), ("aa b c d e x", "")) == [pytest.approx(5 / 7)]
    assert share(("one two three", ""), ("three one two", "")) == [1.0]
    assert share(("abcdefghijkl", ""), ("abcdefghijklm", "")) == [pytest.approx(11 / 14)]
    assert share(("one two three", "abcdefghijkl"), ("one two three", "abcdefghijklm")) == [pytest.approx(11 / 14)]
    assert share(("one two three", ""), ("one two three", "left")) == []
    words = " ".join("abcdefghijklm")  # 13 of 20 words
    pair = [(words, ""), (f"{words} one two three four five six seven", "")]
    assert [shared for _, _, shared in duplicates.similar(pair, 0.65, np.array([True, True]))] == [pytest.approx(0.65)]
    assert share(("a thriller", "so dull a story"), ("no thriller", "so dull a story")) == []
    assert share(("a thriller", "so dull a story"), ("a thriller", "so dull a tale")) == [pytest.approx(3 / 5)]


def test_near_duplicates_are_leaks_across_splits_and_the_same_in_blocks(monkeypatch):
    some_rows = rows(
        ("train", "the old man went home at six", "a"),
        ("train", "the old man went home at seven", "a"),
        ("train", "At six the old man went home!", "a"),
        ("dev", "at six the old man went home", "a"),
    )
    near = duplicates.near(some_rows, duplicates.keys(some_rows), 0.65)
    assert sorted((one.problem, one.row.name, one.other.name) for one in near) == [
        ("near_duplicate", "train:1", "train:0"),
        ("near_leak", "train:0", "dev:3"),
        ("near_leak", "train:1", "dev:3"),
    ]
    pairs = [(f"row {n % 7} of {n % 5} texts", "") for n in range(30)]
    groups = np.arange(30) % 3 == 0
    whole = list(duplicates.similar(pairs, 0.5, groups))
    assert len(whole) == len({(groups[earlier], later) for earlier, later, _ in whole}) > 30
    for earlier, later, most in whole:
        of_pairs = [(share(pairs[n], pairs[later]), n) for n in range(later) if groups[n] == groups[earlier]]
        assert max(of_pairs) == ([pytest.approx(most)], earlier)
    monkeypatch.setattr(duplicates, "_BLOCK", 100)
    assert list(duplicates.similar(pairs, 0.5, groups)) == whole


def test_a_row_unlike_the_others_is_an_outlier():
    vectors = np.random.default_rng(0).normal(size=(60, 8)) * 0.2 + np.eye(8)[0]
    vectors[20] = -np.eye(8)[0]
    many_rows = rows(*(("train", f"{n:b} {n * n}", "a") for n in range(60)))
    outliers = findings.ranked(duplicates.outliers(many_rows, duplicates.keys(many_rows), vectors))
    assert (outliers[0].problem, outliers[0].row.name) == ("outlier", "train:20")
