"""Multiple choice: every form that questions are written in, predictions and metrics by hand."""

import json
import math

import numpy as np
import pytest

from bert_tf.errors import BertError
from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.tasks import text_lines
from bert_tf.tasks.base import Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from tests.features.test_sentences import TOKENIZER
from tests.tasks.refusals import refusal

FAMILY = ChoiceFamily()
EXAMPLES = [
    ChoiceExample("a", "It rained.", "Then", ("it stopped.", "he sang.", "dogs\tbarked."), 1),
    ChoiceExample("b", "Who?", "", ("he", "she"), 0),
    ChoiceExample("c", "Who else?", "", ("he", "she"), 0),
]
LOGITS = [np.array([0.0, math.log(2), 0.0]), np.array([0.0, math.log(3)]), np.array([5.0, 0.0])]
SWAG = "id,sent1,sent2,ending0,ending1,ending2,label\n"
PASSAGE = {
    "article": "Rain fell.",
    "questions": ["What fell?", "_ fell."],
    "options": [["Rain", "Snow"], ["Snow", "Hail", "Rain"]],
    "answers": ["A", "C"],
}


def read(path, split="train", **settings):
    return get_task("custom", of_values({"problem": "choice", f"{split}_file": str(path), **settings})).examples("", split)


def written(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n", encoding="utf-8")
    return path


def test_columns_of_swag_test_splits_without_labels_and_bad_rows_that_can_be_left_out(tmp_path):
    path = written(tmp_path, "a.csv", SWAG + 'x,A dog barks.,It,"runs, fast.",sleeps.,,1\n')
    assert read(path, id_column="id") == [ChoiceExample("x", "A dog barks.", "It", ("runs, fast.", "sleeps."), 1)]
    assert read(written(tmp_path, "a.csv", SWAG + "x,A.,It,a.,b.,,1.0\n"))[0].label == 1  # as pandas writes it
    path = written(tmp_path, "a.tsv", "sent1\tending0\tending1\nHe sat.\tup\tdown\n")
    assert read(path, "test") == [ChoiceExample("test-2", "He sat.", "", ("up", "down"))]
    path = written(tmp_path, "a.csv", SWAG + "x,A.,It,runs.,sleeps.,,7\ny,A.,It,runs.,sleeps.,,1\n")
    task, problems = get_task("custom", of_values({"problem": "choice", "train_file": str(path)})), []
    assert [example.label for example in task.stream(text_lines.Once(path), "train", problems.append)] == [1]
    assert len(problems) == 1


@pytest.mark.parametrize("answer", [1, 1.0, "1", "B", "b", "Hail"])
@pytest.mark.parametrize("names", [("context", "label"), ("passage", "answer")])
def test_objects_name_the_right_option_by_number_letter_or_text(tmp_path, answer, names):
    rows = [
        {names[0]: "It rained.", "question": "What?", "options": ["Rain", "Hail"], names[1]: answer},
        {names[0]: "", "question": "Which?", "options": list("abcde"), names[1]: 0},
    ]
    first, second = read(written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert (first.context, first.question, first.options, first.label) == ("It rained.", "What?", ("Rain", "Hail"), 1)
    assert (second.context, second.question, len(second.options)) == ("Which?", "", 5)


def test_a_mistyped_column_of_labels_is_no_other_one(tmp_path):
    path = written(tmp_path, "a.jsonl", {"question": "Q", "options": ["a", "b"], "answer": 0})
    assert read(path)[0].label == 0
    assert "no column 'gold'" in refusal(BertError, lambda: read(path, label_column="gold"))


def test_passages_of_race_have_several_questions_in_files_folders_and_lines(tmp_path):
    first, second = read(written(tmp_path, "high12.txt", PASSAGE))
    assert (first.guid, first.label, second.guid, second.label) == ("high12-0", 0, "high12-1", 2)
    assert second.rows[2] == ("Rain fell.", "Rain fell.")
    assert [example.guid for example in read(written(tmp_path, "a.jsonl", PASSAGE))] == ["train-1-0", "train-1-1"]
    for name in ("race/middle/2.txt", "race/high/10.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        written(tmp_path, name, PASSAGE)
    assert [one.guid for one in read(tmp_path / "race")] == ["high/10-0", "high/10-1", "middle/2-0", "middle/2-1"]


def _asked(options, label):
    return {"question": "Q", "options": options, "label": label}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", SWAG + "x,A.,It,runs.,sleeps.,,7\n", "a.csv:2: the value in column 'label' is 7, not a number from 0 to 1,"),
        ("a.csv", SWAG + "x,A.,It,runs.,,,0\n", "a.csv:2: 1 option; give at least two"),
        ("a.csv", SWAG + "x,A.,It,,runs.,sits.,0\n", "a.csv:2: the text in column 'ending0' is empty"),
        ("a.csv", SWAG + "x,,,runs.,sits.,,0\n", "a.csv:2: the text in column 'sent2' is empty"),
        ("a.csv", "sent1,ending0,ending1\na,b,c\n", "a.csv:1: no column 'label'"),
        ("a.csv", "text,label\na,b\n", "a.csv: no columns of questions: sent1"),
        ("a.csv", "ending0,ending1,label\na,b,0\n", "a.csv: no columns of questions: sent1"),
        ("a.jsonl", _asked("ab", 0), "a.jsonl:1: the value in column 'options' is not a list"),
        ("a.jsonl", _asked(["a", 3], 0), "a.jsonl:1: the value in column 'options' is not a str"),
        ("a.jsonl", _asked(["a", "b"], "c"), "a.jsonl:1: the value in column 'label' is 'c'"),
        *(
            ("a.jsonl", _asked(["a", "b"], n), f"a.jsonl:1: the value in column 'label' is {n}, not a number")
            for n in (0.5, 2.0)
        ),
        ("a.jsonl", _asked(["a", "b"], True), "a.jsonl:1: the value in column 'label' is True"),
        ("a.jsonl", _asked(["a", "b"], [0]), "a.jsonl:1: the value in column 'label' is [0]"),
        ("a.jsonl", _asked(["1", "2", "3"], "1"), "may be option 0 and option 1; give a number"),
        ("a.jsonl", {**PASSAGE, "answers": ["A"]}, "a.jsonl:1: 2 questions and 1 answers"),
        ("a.jsonl", {**PASSAGE, "options": [["a"], ["b", "c"]]}, "a.jsonl:1: question 0: 1 option; give at least two"),
        ("a.txt", "sent1\tending0\n", "a.txt:1: not JSON"),
        ("a.txt", {"article": "A", "questions": []}, "a.txt: no questions and options in the object"),
        ("a.txt", [1], "a.txt: not a JSON object"),
        ("folder", None, "folder: no .txt or .json files"),
        ("missing.txt", None, "missing.txt: cannot read"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_file_and_row(tmp_path, name, content, message):
    (tmp_path / "folder").mkdir()
    path = tmp_path / name if content is None else written(tmp_path, name, content)
    assert message in refusal(BertError, read, path)


def test_rows_become_the_logits_of_each_question_and_those_of_windows_are_averaged():
    features = FAMILY.features(EXAMPLES, TOKENIZER, Limits(16))
    by_question = FAMILY.predictions({"logits": np.arange(7, dtype=np.float32)}, features, EXAMPLES)
    assert [part.tolist() for part in by_question] == [[0, 1, 2], [3, 4], [5, 6]]
    example = ChoiceExample("a", "the cat sat . the", "", ("cat", "sat"), 0)
    features = FAMILY.features([example], TOKENIZER, Limits(6, "windows"))
    of_option = features.targets["option_ids"]
    assert np.bincount(of_option).min() > 1
    logits = np.where(of_option == 0, 1.0, 2.0) + np.where(np.diff(of_option, prepend=-1) == 1, 1.0, 0.0)
    (means,) = FAMILY.predictions({"logits": logits.astype(np.float32)}, features, [example])
    np.testing.assert_allclose(means, [1, 2] + 1 / np.bincount(of_option))


def test_metrics_panels_and_mistakes_are_those_of_questions_by_their_length():
    evaluation = FAMILY.evaluation(LOGITS, EXAMPLES)
    assert evaluation.metrics == {"accuracy": 2 / 3}
    assert evaluation.loss == pytest.approx((math.log(2) + math.log(4) + math.log(1 + math.exp(-5))) / 3)
    low, high = evaluation.intervals["accuracy"]
    assert low < 2 / 3 < high
    assert [panel.rows for panel in evaluation.panels] == [
        [("2", 2, 0.5, 0.5), ("3", 1, 1.0, pytest.approx(1 / 3))],
        [("0 to 15", 3, pytest.approx(2 / 3), pytest.approx(4 / 9))],
    ]
    (wrong,) = FAMILY.mistakes(LOGITS, EXAMPLES)
    shown = {"id": "b", "text_a": "Who?", "text_b": None, "label": "he", "predicted": "she"}
    assert wrong == {**shown, "confidence": pytest.approx(0.75)}
    assert evaluation.collapsed is None
    assert FAMILY.evaluation([-np.arange(3.0), *LOGITS[2:] * 2], EXAMPLES).collapsed == "all predictions are option 0"
    # Groups begin at their first number, and count context and question.
    lengths = [(15, 0), (15, 1), (1, 30), (16, 16), (512, 0)]
    examples = [ChoiceExample("a", "a " * words, "b " * more, ("he", "she"), 0) for words, more in lengths]
    _, by_words = FAMILY.evaluation([np.array([1.0, 0.0])] * 5, examples).panels
    assert [row[:2] for row in by_words.rows] == [("0 to 15", 1), ("16 to 31", 2), ("32 to 63", 1), ("from 512", 1)]


def test_questions_of_one_context_are_resampled_together():
    """Twelve contexts of ten equal questions; half of the contexts are right."""
    examples = [ChoiceExample(str(n), f"text {n // 10}", "", ("he", "she"), n // 10 % 2) for n in range(120)]
    interval = FAMILY.evaluation([np.array([1.0, 0.0])] * 120, examples).intervals["accuracy"]
    width = 1.96 * 0.5 / np.sqrt(12)  # as of 12 independent questions, not of 120
    assert interval == pytest.approx((0.5 - width, 0.5 + width), abs=0.06)


def test_predictions_have_the_probability_of_each_option():
    layout = FAMILY.layout("tsv")
    lines = [line.split("\t") for line in (layout.header() + layout.rows(EXAMPLES, LOGITS)).splitlines()]
    assert (lines[0], lines[1][:3]) == (["id", "label", "option", "probability", "probabilities"], ["a", "1", "he sang."])
    np.testing.assert_allclose([float(value) for value in lines[1][4].split(" ")], [0.25, 0.5, 0.25])
    line = json.loads(FAMILY.layout("jsonl").rows(EXAMPLES, LOGITS).splitlines()[1])
    assert (line["label"], line["option"], line["probabilities"]) == (1, "she", pytest.approx([0.25, 0.75]))
