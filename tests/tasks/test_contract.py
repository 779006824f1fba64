"""What every kind of task keeps to: from rows to features, predictions, files and metrics; records, parts, bad files."""

import csv
import fnmatch
import gzip
import io
import json
import re

import numpy as np
import pytest

from bert_tf import extension, metrics
from bert_tf.batch import job
from bert_tf.errors import BertError, FlagError
from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.extensions.serve import forms
from bert_tf.extensions.serve.call import as_json
from bert_tf.extensions.similarity.family import ContrastiveFamily, SimilarityFamily
from bert_tf.extensions.span.family import SpanFamily, SpanTask
from bert_tf.extensions.tags.family import TagFamily
from bert_tf.head_spec import CHOICE, CLASSIFICATION, CONTRASTIVE, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS, VECTORS
from bert_tf.kinds import KINDS
from bert_tf.settings import setting_names
from bert_tf.tasks import families, registry
from bert_tf.tasks.base import Limits
from bert_tf.tasks.families import rules_of, with_rules
from bert_tf.tasks.predictions import joined
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.settings import of_values
from tests.extensions.tags.test_features import TOKENIZER

TEXTS = ("a b c ax", "b", "c a b a b c a b a b c a b", "a")  # the third has several windows


def _sentences(kind, *labels):
    names = ("x", "y") if kind != REGRESSION else ()
    return SentenceFamily(names, kind, metrics.usual(kind, len(names))), list(zip(TEXTS, labels))


ROWS = {
    CLASSIFICATION: _sentences(CLASSIFICATION, "x", "y", "y", "x"),
    MULTI_LABEL: _sentences(MULTI_LABEL, ["x"], [], ["x", "y"], ["y"]),
    REGRESSION: _sentences(REGRESSION, 0.5, 1.0, -2.0, 3.0),
    SIMILARITY: (SimilarityFamily(5.0), [(text, "c b", score) for text, score in zip(TEXTS, (5.0, 0.0, 2.0, 1.0))]),
    CONTRASTIVE: (ContrastiveFamily(temperature=0.5), [(text, f"{text} c") for text in TEXTS]),
    SPAN: (
        SpanFamily(doc_stride=4, max_query_length=4, version_2_with_negative=True),
        [{"question": "a", "context": text, "answer": answer} for text, answer in zip(TEXTS, ("ax", "b", "", "a"))],
    ),
    TAGS: (TagFamily(("O", "B-X", "I-X")), [(text.split(), ["B-X"] + ["O"] * text.count(" ")) for text in TEXTS]),
    CHOICE: (ChoiceFamily(), [(text, "", ["a b", "c", "b a c"][: 2 + n % 2], n % 2) for n, text in enumerate(TEXTS)]),
}
OUTPUTS = {SIMILARITY: ("vectors", 3), CONTRASTIVE: ("vectors", 3), SPAN: ("span_logits", 2), TAGS: ("logits", 3)}


@pytest.fixture(params=ROWS)
def kind(request):
    return request.param


def outputs(family, features):
    """Returns what a head might put out: a function of the tokens of a row alone."""
    name, width = OUTPUTS.get(family.kind, ("logits", family.head.num_labels))
    each = np.sin(np.outer(features.token_ids, np.arange(1, width + 1))).astype(np.float32)  # [total, W]
    if family.kind in (SPAN, TAGS):
        return {name: each}
    starts = np.cumsum(features.lengths) - features.lengths
    of_rows = np.add.reduceat(each, starts) if len(starts) else each
    return {name: of_rows[:, 0] if family.kind == CHOICE else of_rows}


def predicted(family, examples):
    features = family.features(examples, TOKENIZER, Limits(12, "windows"))
    return family.predictions(outputs(family, features), features, examples)


@pytest.fixture
def whole(kind):
    """Family, examples and predictions."""
    family, rows = ROWS[kind]
    examples = family.from_rows(rows, "dev", labelled=True)
    return family, examples, predicted(family, examples)


def test_every_kind_has_a_family_and_a_head_and_a_job_knows_the_rules_of_all():
    assert set(families._FAMILIES) == {*KINDS, *extension.named("kinds")} - {VECTORS}
    assert {families._FAMILIES[kind].kind for kind in (*OUTPUTS, CHOICE)} == {*OUTPUTS, CHOICE}
    known = {name for family in families._FAMILIES.values() for name in family.rules}
    assert set(setting_names(job.Rules)) == known


def test_a_family_comes_back_from_its_record_and_predicts_rows_without_labels_or_none(kind):
    family, rows = ROWS[kind]
    again = families.of_record(family.record())
    assert (again.kind, again.labels, again.head, again.targets) == (kind, family.labels, family.head, family.targets)
    assert again.record() == family.record()
    assert list(family.listed(predicted(family, []), [])) == []
    unlabelled = [{**row, "answer": None} if isinstance(row, dict) else row[:-1] for row in rows]
    if kind == TAGS:
        unlabelled = [row[0] for row in unlabelled]
    if kind == CONTRASTIVE:
        unlabelled = rows
    assert [example.label for example in family.from_rows(unlabelled, "test", labelled=False)] == [None] * 4


def test_examples_are_predicted_in_order_with_windows_and_parts_are_the_whole(whole):
    family, examples, predictions = whole
    assert len(family.features(examples, TOKENIZER, Limits(12, "windows"))) > len(examples)
    assert [one.id for one in family.listed(predictions, examples)] == [f"dev-{n}" for n in range(4)]
    parts = joined([predicted(family, examples[:1]), predicted(family, examples[1:3]), predicted(family, examples[3:])])
    suffixes = {"suffix": "_x", "published_suffix": "_y"}
    assert family.files(parts, examples, **suffixes) == family.files(predictions, examples, **suffixes)
    assert family.evaluation(parts, examples).values == pytest.approx(family.evaluation(predictions, examples).values)


def test_files_match_their_patterns_and_layouts_have_a_row_each(whole, kind):
    family, examples, predictions = whole
    files = family.files(predictions, examples, suffix="_x", published_suffix="_x")
    assert all(any(fnmatch.fnmatch(name, pattern) for pattern in family.file_patterns) for name in files)
    assert {name.replace("_x", "*") for name in files} == set(family.file_patterns)
    lines = {form: family.layout(form).header() + family.layout(form).rows(examples, predictions) for form in ("csv", "jsonl")}
    header, *cells = csv.reader(io.StringIO(lines["csv"], newline=""))
    objects = [json.loads(line) for line in lines["jsonl"].splitlines()]
    assert header[0] == "id"
    assert [one["id"] for one in objects] == [f"dev-{n}" for n in range(4)]
    if kind == TAGS:
        assert [len(one["tags"]) for one in objects] == [sum(row[0] == one["id"] for row in cells) for one in objects]
        return
    assert [list(one) for one in objects] == [header] * 4
    assert [row[0] for row in cells] == [one["id"] for one in objects]
    tsv = family.layout("tsv").rows(examples, predictions)
    assert [line.split("\t") for line in tsv.splitlines()] == cells


def test_metrics_are_those_of_the_family_and_mistakes_of_the_examples(whole, kind):
    family, examples, predictions = whole
    evaluation = family.evaluation(predictions, examples)
    assert {*family.metrics} <= {*evaluation.metrics}
    assert evaluation.examples == 4
    assert np.isfinite(evaluation.loss)
    json.dumps(evaluation.details(), allow_nan=False)
    assert all(len(row) == len(panel.columns) for panel in evaluation.panels for row in panel.rows)
    wrong = family.mistakes(predictions, examples)
    assert wrong
    assert {one["id"] for one in wrong} <= {one.guid for one in examples}
    assert all({"text_a", "label", "predicted"} <= one.keys() for one in wrong)
    schema = forms.of(kind).prediction
    for one in family.listed(predictions, examples):
        answer = json.loads(as_json(one))
        assert set(answer) == set(schema["properties"]) == set(schema["required"])


def test_classes_are_balanced_where_the_loss_can():
    for kind in (CLASSIFICATION, MULTI_LABEL, TAGS, SPAN):
        family, rows = ROWS[kind]
        features = family.features(family.from_rows(rows, "train", labelled=True), TOKENIZER, Limits(16))
        assert len(family.class_weights(features)) == len(family.labels)


# Rules of answers, which may be given anew where a model is used.

RULES = {int: 7, float: 0.5, bool: True}


@pytest.mark.parametrize("kind", [SPAN, TAGS, CONTRASTIVE])
def test_other_rules_leave_what_is_learned_as_it_is(kind):
    family, _ = ROWS[kind]
    other = {name: RULES[type(value)] for name, value in rules_of(family).items()}
    changed = with_rules(family, other)
    assert rules_of(changed) == other != rules_of(family)
    assert (changed.record(), changed.head, changed.targets) == (family.record(), family.head, family.targets)


@pytest.mark.parametrize(("kind", "instead"), [(TAGS, "it takes --constrained_decoding"), (CHOICE, "leave it out")])
def test_rules_of_other_families_are_refused(kind, instead):
    with pytest.raises(FlagError, match=f"--n_best_size: a model of {kind} does not take it; {instead}"):
        with_rules(ROWS[kind][0], {"n_best_size": 3})


def test_a_threshold_of_no_answer_needs_questions_without_one():
    with_rules(SpanFamily(), {"null_score_diff_threshold": 0.0})  # the default
    message = r"^--null_score_diff_threshold: is for questions that may have no answer \(SQuAD2, --version_2_with_negative\)"
    for idle in (
        lambda: with_rules(SpanFamily(), {"null_score_diff_threshold": -1.5}),
        lambda: registry.get_task("SQuAD", of_values({"null_score_diff_threshold": -1.5})),
        lambda: SpanTask(test=[_QUESTION], null_score_diff_threshold=-1.5),
    ):
        with pytest.raises(FlagError, match=message):
            idle()
    registry.get_task("SQuAD2", of_values({"null_score_diff_threshold": -1.5}))


_QUESTION = {"id": "1", "question": "who?", "context": "Ann left Rome.", "answer": "Ann", "start": 0}
_OPTIONS = {"context": "It rains.", "question": "", "options": ["we stay", "we swim"], "answer": 0}
_SQUAD = {
    "title": "t",
    "paragraphs": [
        {"context": "Ann left.", "qas": [{"id": "1", "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}]}
    ],
}
# One row that can be read, by problem and suffix.
GOOD = {
    ("span", ".json"): json.dumps({"data": [_SQUAD]}),
    ("span", ".jsonl"): json.dumps(_QUESTION) + "\n",
    ("span", ".csv"): "question,context,answer\nwho?,Ann left.,Ann\n",
    ("tags", ".conll"): "Ann B-PER\nleft O\n",
    ("tags", ".jsonl"): json.dumps({"tokens": ["Ann", "left"], "tags": ["B-PER", "O"]}) + "\n",
    ("choice", ".csv"): "sent1,sent2,ending0,ending1,label\nIt rains.,We,stay,swim,0\n",
    ("choice", ".jsonl"): json.dumps(_OPTIONS) + "\n",
    ("similarity", ".tsv"): "text_a\ttext_b\tlabel\none\ttwo\t0.5\n",
    ("contrastive", ".csv"): "text_a,text_b\none,two\n",
}
# What a file holds instead, what its name ends in, and a pattern of what is said of it.
DAMAGES = {
    "empty": (lambda _: b"", "", "the file is empty"),
    "blank": (lambda _: b"\n \n", "", "the file is empty"),
    "compressed under another name": (gzip.compress, "", ".*the file is compressed; add .gz to its name"),
    "Latin-1": (lambda good: good + good.replace(b"e", b"\xe9"), "", "(?s).*"),
    "a picture": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "", "(?s).*"),
    "a cut archive": (lambda good: gzip.compress(good)[:-9], ".gz", "cannot read the file: Compressed file ended.*"),
}


def read(problem, path, content):
    path.write_bytes(content)
    files = {f"{split}_file": str(path) for split in ("train", "dev")}
    task = registry.get_task("custom", of_values({"problem": problem, **files}))
    assert task.family
    return task.examples("", "dev")


@pytest.mark.parametrize(("problem", "suffix"), GOOD)
def test_a_bad_file_is_one_line(problem, suffix, tmp_path):
    good = GOOD[problem, suffix].encode()
    assert len(read(problem, tmp_path / f"good{suffix}", good)) == 1
    for damaged, end, message in DAMAGES.values():
        path = tmp_path / f"dev{suffix}{end}"
        with pytest.raises(BertError) as caught:
            read(problem, path, damaged(good))
        problem_lines = str(caught.value)
        assert all(line.startswith(f"{path}:") for line in problem_lines.splitlines())
        assert problem_lines.count("\n") == (2 if problem_lines.endswith("2 rows cannot be used") else 0)
        assert re.fullmatch(message, problem_lines.removeprefix(f"{path}: "))
