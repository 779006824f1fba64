"""Answers: files, from logits to candidates beside the published loop, scores beside a second implementation, metrics."""

import collections
import doctest
import gzip
import json
import math
import random
import tracemalloc

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.span import evaluation as scores
from bert_tf.extensions.span import features as spans
from bert_tf.extensions.span import predictions
from bert_tf.extensions.span.decoding import Candidate, Rules, decode
from bert_tf.extensions.span.evaluation import evaluate
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.predictions import Prediction, Predictions
from bert_tf.extensions.span.reader import Answer, Reader, SpanExample, read_rows
from bert_tf.tasks.base import Limits
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tasks.refusals import refusal

READER, READER_2 = Reader(may_be_none=False), Reader(may_be_none=True)
FIRST = "article 1, paragraph 1, question 1"
NO_NUMBER = (
    "the value in column 'start' is not a whole number from 0 on: 'x'; leave out the starts that are unknown, or correct them"
)
NO_ANSWER = "the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that"
NO_ARTICLES = "no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl"
FOX = SpanExample("q1", "who?", "red fox", (Answer("fox", 4), Answer("red fox", 0)), "Foxes")


def question(**changes):
    answers = [{"text": "fox", "answer_start": 4}, {"text": "red fox", "answer_start": 0}]
    return {"id": "q1", "question": "who?", "answers": answers, **changes}


def squad(*questions):
    return {"version": "1.1", "data": [{"title": "Foxes", "paragraphs": [{"context": "red fox", "qas": list(questions)}]}]}


def written(folder, content, name="train.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder / name


def test_squads_layout_packed_or_not_with_and_without_answers(tmp_path):
    path = written(tmp_path, squad(question()))
    assert list(READER(path, "dev")) == [FOX]
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    assert list(READER(packed, "dev")) == [FOX]
    # No answer is said by a flag or by none in the list, and not looked for in a split to predict.
    path = written(tmp_path, squad(question(is_impossible=True), question(answers=[]), question(is_impossible=False)))
    assert [bool(example.answers) for example in READER_2(path, "dev")] == [False, False, True]
    (example,) = READER(written(tmp_path, squad({"id": 7, "question": "who?"})), "test")
    assert (example.guid, example.answers) == ("7", None)


ONE = SpanExample("q1", "who?", "red fox", (Answer("fox", 4),), "Foxes")
UNNAMED = SpanExample("train-2", "who?", "red fox", (Answer("fox", 4),))
OBJECT = {"context": "red fox", "question": "who?", "answer": "fox", "start": 4, "id": "q1", "title": "Foxes"}

LISTS = {
    **{name: OBJECT[name] for name in ("context", "question", "id", "title")},
    "answers": {"text": ["fox"], "answer_start": [4]},
}

LISTED = {**LISTS, "answers": [{"text": "fox", "answer_start": 4}]}


@pytest.mark.parametrize(
    ("reader", "split", "name", "text", "expected"),
    [
        (READER, "train", "a.jsonl", OBJECT, ONE),
        (Reader(may_be_none=False, file_format="jsonl"), "train", "a.json", OBJECT, ONE),
        (READER, "train", "a.jsonl", LISTS, ONE),
        (READER, "train", "a.jsonl", LISTED, ONE),
        (READER_2, "train", "a.jsonl", {**LISTS, "answers": []}, SpanExample("q1", "who?", "red fox", (), "Foxes")),
        (READER, "train", "a.csv", "id,title,question,context,answer,start\nq1,Foxes,who?,red fox,fox,4\n", ONE),
        (READER, "train", "a.csv", "id,title,question,context,answer,start\nq1,Foxes,who?,red fox,fox,4.0\n", ONE),
        (READER, "train", "a.csv", "id,title,question,context,answer,answer_start\nq1,Foxes,who?,red fox,fox,4\n", ONE),
        (READER, "train", "a.tsv", "start\tanswer\tcontext\tquestion\tid\ttitle\n4\tfox\tred fox\twho?\tq1\tFoxes\n", ONE),
        (READER, "train", "a.csv", "question,context,answer\nwho?,red fox,fox\n", UNNAMED),
        (READER_2, "train", "a.csv", "question,context,answer,start\nwho?,red fox,,\n",
         SpanExample("train-2", "who?", "red fox", ())),
        (Reader(may_be_none=False, id_column="key"), "test", "a.csv", "key,question,context\nk,who?,red fox\n",
         SpanExample("k", "who?", "red fox")),
        (Reader(may_be_none=False, id_column="key", needs_ids=False), "test", "a.csv", "question,context\nwho?,red fox\n",
         SpanExample("test-2", "who?", "red fox")),
    ],
)  # fmt: skip
def test_tables(tmp_path, reader, split, name, text, expected):
    assert list(reader(written(tmp_path, text, name), split)) == [expected]


@pytest.mark.parametrize("name", ["start", "answer_start"])
def test_rows_in_memory_have_the_start_by_either_name(name):
    row = {"question": "who?", "context": "a fox or a fox", "answer": "fox", name: 11}
    (example,) = read_rows([row], "train", labelled=True, may_be_none=False)
    assert example.answers == (Answer("fox", 11),)


def test_rows_without_the_column_of_ids_have_those_of_the_usual_one(tmp_path, caplog):
    path = written(tmp_path, "id,question,context\nk,who?,red fox\n", "a.csv")
    reader = Reader(may_be_none=False, id_column="key", needs_ids=False)
    assert [example.guid for example in reader(path, "test")] == ["k"]
    assert "no column 'key' for the ids, so rows are named by column 'id'; the header line" in caplog.text


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (squad(question(question="")), "a.json", f"{FIRST}: the text in column 'question' is empty"),
        (squad(question(id=None)), "a.json", f"{FIRST}: the value in column 'id' is not a name: None"),
        (squad(question(), {"id": "2"}), "a.json", "article 1, paragraph 1, question 2: no 'question' in the object"),
        (squad(question(answers=[])), "a.json", f"{FIRST}: {NO_ANSWER}"),
        (squad(question(answers=[{"text": "fox"}])), "a.json", f"{FIRST}: no 'answer_start' in the object"),
        (squad(question(answers=[{"text": "fox", "answer_start": "x"}])), "a.json", f"{FIRST}: {NO_NUMBER}"),
        *(
            (
                squad(question(is_impossible=value)),
                "a.json",
                f"{FIRST}: 'is_impossible' is neither true nor false: {value!r}; write it" " without quotes",
            )
            for value in ("False", "true", 0)
        ),
        (squad(question(answers="fox")), "a.json", f"{FIRST}: 'answers' is not a list: 'fox'"),
        (squad(3), "a.json", f"{FIRST}: expected an object, not 3"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "a.json", "article 1, paragraph 1: no 'context' in the object"),
        ({"data": [{"title": "x"}]}, "a.json", "article 1: no 'paragraphs' in the object"),
        ({"data": [3]}, "a.json", "article 1: expected an object, not 3"),
        ({"data": []}, "a.json", NO_ARTICLES),
        ("[]", "a.json", NO_ARTICLES),
        ({**LISTS, "answers": []}, "a.jsonl", f"1: {NO_ANSWER}"),
        ("question,context,answer,start\nwho?,red fox,,\n", "a.csv", f"2: {NO_ANSWER}"),
        ("context,question\na,b\n", "a.csv", "1: no column 'answer'; the header line reads context | question"),
        ("context,question,answer,start\nred fox,who?,fox,x\n", "a.csv", f"2: {NO_NUMBER}"),
        ("context,question,answer,start\nred fox,who?,fox,0.5\n", "a.csv", "2: " + NO_NUMBER.replace("'x'", "'0.5'")),
        ("context,question,answer,start\nred fox,,fox,4\n", "a.csv", "2: the text in column 'question' is empty"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path, content, name, problem):
    path = written(tmp_path, content, name)
    assert refusal(DataError, lambda: list(READER(path, "train"))).replace(f"{path}: ", f"{path}:") == f"{path}:{problem}"


@pytest.mark.parametrize(
    ("content", "start", "end"),
    [
        (b'{"data": [{"title": "x", "paragraphs": []}, {"tit', "not JSON: ", ""),
        (b'{"data": [}', "not JSON: ", ""),
        (b'{"data": [{}]} x', "article 1: ", ""),
        (b'{"question": "who?"}\n{"question": "why?"}\n', "not JSON: ", "; near article 1; name JSON lines .jsonl"),
        (b'{"data": [{"title": "\xff"}]}', "not JSON: lexical error: invalid bytes in UTF8 string; near article 1", ""),
        (None, "cannot read the file: No such file", ""),
    ],
)
def test_what_is_not_json_is_one_line(tmp_path, content, start, end):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    line = refusal(DataError, lambda: list(READER(path, "train")))
    assert line.startswith(f"{path}: {start}")
    assert line.endswith(end)


def test_bad_questions_can_be_left_out_and_answers_that_are_elsewhere_are_named_in_training(tmp_path, caplog):
    problems = []
    examples = list(READER(written(tmp_path, squad(3, question(), {"id": "x"})), "train", problems.append))
    assert (examples, len(problems)) == ([FOX], 2)
    caplog.clear()
    bad = {"answers": [{"text": "fox", "answer_start": 3}]}
    path = written(tmp_path, squad(question(), question(id="b", **bad), question(id="c", **bad)))
    assert len(list(READER(path, "dev"))) == 3
    assert not caplog.messages
    assert len(list(READER(path, "train"))) == 3
    misplaced = "answers not found at their start (without one: not exactly once in the context)"
    assert caplog.messages == [f"{path}: {misplaced}, so not trained on: 2 of 3: b, c"]
    path = written(tmp_path, squad(question(id="b", **bad)))
    assert refusal(DataError, lambda: list(READER(path, "train"))) == f"{path}: no row can be trained on: {misplaced}"


def test_one_article_at_a_time_is_in_memory(tmp_path):
    article = {"title": "x", "paragraphs": [{"context": "red fox " * 2000, "qas": [question()]}]}
    path = written(tmp_path, {"data": [article] * 300})
    examples = READER(path, "dev")
    next(examples)
    tracemalloc.start()
    assert sum(1 for _ in examples) == 299
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 8


TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcdefgh", "##s"]))
RULES = Rules(n_best_size=20, max_answer_length=30)


def built(*questions, length=384, stride=128):
    return spans.build([spans.Question(*one) for one in questions], TOKENIZER, spans.Windows(length, stride, 64))


def decoded(starts, ends, text="a b c", rules=RULES, **windows):
    """Decodes one question `h` about a text, by the logits of all tokens of its rows: [CLS] h [SEP] a b c [SEP]."""
    (one,) = decode(np.array([starts, ends], np.float32).T, built(("h", text), **windows), [text], rules)
    return one


def texts(*logits, **settings):
    return [candidate.text for candidate in decoded(*logits, **settings).candidates]


def test_the_best_answer_comes_first_and_what_may_be_one():
    best = decoded([0, 0, 0, 1, 5, 0, 0], [0, 0, 0, 0, 0, 4, 0]).candidates[0]
    assert (*best, best.score) == ("b c", 2, 5, 0, 5.0, 4.0, 9.0)
    # It does not end before it begins, nor lies in the question.
    of_pair = texts([9, 9, 9, 0, 0, 5, 9], [9, 9, 9, 6, 0, 0, 9])
    assert of_pair[:2] == ["a", "c"]
    assert set(of_pair) <= {"a", "b", "c", "a b", "b c", "a b c"}
    long = [0, 0, 0, 9, 0, 0, 0], [0, 0, 0, 0, 0, 9, 0]
    assert texts(*long)[0] == "a b c"
    assert "a b c" not in texts(*long, rules=Rules(20, 2))
    # As published only so many logits of a row are looked at: here of each end those of [CLS] and one token.
    assert texts([9, 0, 0, 1, 5, 4, 0], [9, 0, 0, 1, 5, 6, 0], rules=Rules(2, 30)) == ["b c"]
    assert len(texts([0] * 7, [0, 0, 0, 3, 2, 1, 0], rules=Rules(7, 30))) == 6
    assert len(texts([0, 0, 0, 3, 2, 1, 0], [0, 0, 0, 3, 2, 1, 0], rules=Rules(3, 30))) == 3
    assert texts([1, 0, 0, 0], [1, 0, 0, 0], text="") == []  # no pieces


def test_equal_texts_are_one_candidate_that_begins_in_the_widest_window_of_its_first_token():
    of_same = decoded([0, 0, 0, 3, 0, 4, 0], [0, 0, 0, 3, 0, 4, 0], text="a b a").candidates
    assert [candidate.start for candidate in of_same if candidate.text == "a"] == [4]
    best = decoded([0, 0, 0, 9, 0, 0], [0, 0, 0, 9, 0, 0], text="e\u0301 b").candidates[0]
    assert (best.text, best.end) == ("e\u0301", 2)
    # Rows: [CLS] h [SEP] a b c d [SEP] and [CLS] h [SEP] c d e f [SEP]; c is poorer in the second.
    second, windows = [0, 0, 0, 9, 0, 0, 0, 0], {"text": "a b c d e f", "length": 8, "stride": 2}
    one = decoded([0] * 8 + second, [0] * 8 + second, **windows)
    assert all(candidate.score < 18 for candidate in one.candidates)
    assert next(candidate for candidate in one.candidates if candidate.text == "c").window == 0
    one = decoded([5] + [0] * 7 + [2] + [0] * 7, [1] + [0] * 7 + [3] + [0] * 7, **windows)
    assert one.none == ("", None, None, 1, 2.0, 3.0)  # where it is least likely


def published(logits, features, contexts, rules):
    """The published loop over windows and pairs, token by token."""
    rows = collections.defaultdict(list)
    start = 0
    for row, length in enumerate(features.lengths.tolist()):
        rows[int(features.example_ids[row])].append(slice(start, start + length))
        start += length
    for example, context in enumerate(contexts):
        pairs = []
        for window, row in enumerate(rows[example]):
            first, after = (features.targets[name][row] for name in (spans.FIRST, spans.AFTER))
            best = [sorted(range(len(first)), key=lambda at, e=e: -logits[row][at, e])[: rules.n_best_size] for e in (0, 1)]
            for a in best[0]:
                for b in best[1]:
                    if first[a] < 0 or first[b] < 0 or not features.targets[spans.WIDEST][row][a]:
                        continue
                    if b < a or b - a + 1 > rules.max_answer_length:
                        continue
                    pairs.append((float(logits[row][a, 0]) + float(logits[row][b, 1]), context[first[a] : after[b]], window))
        pairs.sort(key=lambda pair: -pair[0])
        distinct = {}
        for score, text, window in pairs:
            distinct.setdefault(text, (text, score, window))
        yield list(distinct.values())[: rules.n_best_size]


@pytest.mark.parametrize("rules", [RULES, Rules(3, 4)])
def test_equal_to_the_published_loop_and_in_blocks_of_any_size(rules, monkeypatch):
    chance = np.random.default_rng(1)
    contexts = [" ".join(chance.choice(list("abcdefg"), int(size))) for size in chance.integers(0, 40, 25)]
    features = built(*(("h", text) for text in contexts), length=20, stride=5)
    logits = chance.normal(size=(len(features.token_ids), 2)).astype(np.float32)
    expected = [
        [(text, pytest.approx(score), window) for text, score, window in one]
        for one in published(logits, features, contexts, rules)
    ]
    whole = decode(logits, features, contexts, rules)
    assert [[(c.text, c.score, c.window) for c in one.candidates] for one in whole] == expected
    monkeypatch.setattr("bert_tf.extensions.span.decoding._BLOCK", 1)
    assert decode(logits, features, contexts, rules) == whole


# Exact match and F1


@pytest.mark.parametrize(
    ("predicted", "references", "may_be_none", "expected"),
    [
        *(
            (predicted, [reference], False, expected)
            for predicted, reference, expected in (
                ("The Cat!", "cat", (1, 1)),
                ("x-ray", "xray", (1, 1)),
                ("theatre", "atre", (0, 0)),
                ("\u00c9t\u00e9", "\u00e9t\u00e9", (1, 1)),
                ("\u201ccat\u201d", "cat", (0, 0)),  # only ASCII's punctuation is taken off
                ("big cat", "cat", (0, 2 / 3)),
                ("cat cat dog", "cat cat", (0, 4 / 5)),
                ("cat cat", "cat", (0, 2 / 3)),
                ("", "cat", (0, 0)),
                ("the", "a", (1, 0)),  # as SQuAD 1.1 has it
            )
        ),
        ("black cat", ["cat", "a black cat sat"], False, (0, 4 / 5)),  # the best reference of each score
        ("", [], True, (1, 1)),
        ("cat", [], True, (0, 0)),
        ("", ["cat"], True, (0, 0)),
        ("the", ["a"], True, (1, 1)),
        ("", ["the", "cat"], True, (0, 0)),
    ],
)
def test_scores_by_hand(predicted, references, may_be_none, expected):
    assert tuple(scores.score(predicted, references, may_be_none=may_be_none)) == pytest.approx(expected)


def second_words(text):
    """Deletes punctuation letter by letter, and articles word by word: no word here has one inside."""
    kept = "".join(c for c in text.lower() if not c.isascii() or c.isalnum() or c.isspace())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def second_score(predicted, references):
    best_exact, best_f1 = 0.0, 0.0
    for reference in references:
        left, right = second_words(predicted), second_words(reference)
        rest, same = list(right), 0
        for word in left:
            if word in rest:
                rest.remove(word)
                same += 1
        precision, recall = same / max(len(left), 1), same / max(len(right), 1)
        best_exact = max(best_exact, float(" ".join(left) == " ".join(right)))
        best_f1 = max(best_f1, 2 * precision * recall / (precision + recall) if same else 0.0)
    return best_exact, best_f1


def test_equal_to_a_second_implementation_on_a_thousand_perturbed_answers():
    chance = random.Random(4)
    alphabet = "the The a An cat CAT cat's \u00e9t\u00e9 \u00c9T\u00c9 1,000 (1000) - x-ray U.S. \u2019s \u00df theatre".split()
    for _ in range(1000):
        references = [" ".join(chance.choices(alphabet, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        words = chance.choice(references).split()
        for _ in range(chance.randint(0, 3)):
            words[chance.randrange(len(words))] = chance.choice([*alphabet, chance.choice(words).upper(), ""])
        predicted = chance.choice([" ", "  ", "\t"]).join(words)
        score = tuple(scores.score(predicted, references, may_be_none=False))
        assert score == pytest.approx(second_score(predicted, references)), (predicted, references)


def test_the_best_threshold_is_the_lowest_with_the_highest_mean():
    odds, answered, unanswered = np.array([[-3.0, -1.0, 2.0, 5.0], [1.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]])
    # None answered 1/4, then 2/4, 2.5/4, 1.5/4, 2.5/4.
    assert scores.best_threshold(odds, answered, unanswered) == (2.5 / 4, -1.0)
    # It does not divide equal odds.
    assert scores.best_threshold(np.zeros(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])) == (0.5, -1.0)


# Evaluation


def example(guid, question, *answers, context="red fox", title=""):
    return SpanExample(guid, question, context, tuple(Answer(text, 0) for text in answers), title)


def predicted(guid, label, *, best=None, odds=None):
    listed = ((Candidate(best or label, 0, 1, 0, 0.0, 0.0), 1.0),) if best or label else ()
    return Prediction(guid, label, 1.0, None, None, 0, odds, listed)


def evaluated(examples, answers, *, may_be_none=False):
    return evaluate(examples, Predictions(answers, 0.25), may_be_none=may_be_none)


def test_means_over_questions_and_panels_by_length_and_first_word():
    questions = ("Who ran?", "fox", "the Fox"), ("who was it that ran so very far", "red fox", "fox"), ("Why", "red", "blue")
    means = evaluated(
        [example(str(n), question, answer) for n, (question, answer, _) in enumerate(questions)],
        [predicted(str(n), said) for n, (*_, said) in enumerate(questions)],
    )
    assert means.values == pytest.approx({"f1": (1 + 2 / 3 + 0) / 3, "exact_match": 1 / 3, "loss": 0.25})
    assert (means.examples, next(iter(means.metrics))) == (3, "f1")
    assert {panel.title: [list(row) for row in panel.rows] for panel in means.panels} == {
        "By length of the question": [["up to 6", 2, 0.5, 0.5], ["7 to 9", 1, 0.0, pytest.approx(2 / 3)]],
        "By first word of the question": [["who", 2, 0.5, pytest.approx(5 / 6)], ["why", 1, 0.0, 0.0]],
        "By length of the context": [["up to 50", 3, pytest.approx(1 / 3), pytest.approx(5 / 9)]],
    }


def test_questions_without_an_answer_are_also_measured_alone_and_a_model_that_answers_nothing_has_collapsed():
    examples = [example("1", "a", "fox"), example("2", "b", "red"), example("3", "c"), example("4", "d")]
    answers = [
        *(predicted("1", "fox", odds=-4.00004), predicted("2", "", best="red", odds=1.0)),
        *(predicted("3", "fox", odds=-1.0), predicted("4", "", best="fox", odds=3.0)),
    ]
    means = evaluated(examples, answers, may_be_none=True)
    of_kinds = {f"{kind}{name}": 0.5 for kind in ("", "has_answer_", "no_answer_") for name in ("f1", "exact_match")}
    assert means.metrics == pytest.approx({**of_kinds, "best_f1": 0.75, "best_exact_match": 0.75})  # the first alone
    assert means.details()["best_thresholds"] == {"best_f1": -4.00004, "best_exact_match": -4.00004}
    assert means.lines[0] == "best_f1 with the best --null_score_diff_threshold=-4.00004: 0.7500"
    assert [list(row) for row in means.panels[0].rows] == [["with an answer", 2, 0.5, 0.5], ["without an answer", 2, 0.5, 0.5]]
    means = evaluated([example("1", "a", "fox"), example("2", "b")], [predicted("1", ""), predicted("2", "")], may_be_none=True)
    assert abs(means.more["best_thresholds"]["best_f1"]) <= 1.0
    assert means.collapsed == "no question has an answer"
    one = evaluated([example("1", "q", "fox")], [predicted("1", "fox")])
    assert (one.intervals, one.collapsed) == ({}, None)


def test_intervals_draw_articles_and_paragraphs_of_few_articles():
    """Twelve groups of ten equal questions; half of the groups are right."""
    intervals = []
    for title in ("article {}", "one"):
        examples = [example(str(n), "q", "fox", context=f"fox {n // 10}", title=title.format(n // 10)) for n in range(120)]
        answers = [predicted(str(n), "fox" if n // 10 % 2 else "red") for n in range(120)]
        intervals.append(evaluated(examples, answers).intervals["f1"])
    width = 1.96 * 0.5 / np.sqrt(12)  # as of 12 independent questions, not of 120
    assert intervals[0] == intervals[1] == pytest.approx((0.5 - width, 0.5 + width), abs=0.06)


# The family

EXAMPLES = [SpanExample(guid, "h", "a b", answers) for guid, answers in zip("123", ((Answer("b", 2),), (Answer("b", 0),), ()))]


def test_rules_are_no_part_of_a_record_and_the_loss_is_a_mean_over_the_windows_that_count():
    assert SpanFamily(n_best_size=3, max_answer_length=9, null_score_diff_threshold=-1.5).record() == SpanFamily().record()
    trained = SpanFamily().as_trained({"doc_stride": 64, "n_best_size": 3, "version_2_with_negative": True})
    assert trained == SpanFamily(doc_stride=64, n_best_size=3)
    # [CLS] h [SEP] a b [SEP], three times; the answer of the first is the fifth token, of the third [CLS].
    features = SpanFamily().features(EXAMPLES, TOKENIZER, Limits(16))
    assert features.weights.tolist() == [1, 0, 1]  # the second answer is elsewhere
    logits = np.zeros([18, 2], np.float32)
    logits[4] = math.log(5)  # 5 of 10
    logits[6] = 100.0
    trained = SpanFamily(version_2_with_negative=True).predictions({"span_logits": logits}, features, EXAMPLES)
    assert trained.loss == pytest.approx((math.log(2) + math.log(6)) / 2)
    assert (trained.each[0].id, trained.each[0].label, trained.each[0].start, trained.each[0].end) == ("1", "b", 2, 3)


@pytest.mark.parametrize(
    ("gold", "predicted", "marks"),
    [
        (None, None, []),
        ((2, 4), None, [(2, 4, "label")]),
        ((2, 4), (2, 4), [(2, 4, "both")]),
        ((6, 8), (2, 4), [(2, 4, "predicted"), (6, 8, "label")]),
        ((2, 8), (4, 6), [(2, 4, "label"), (4, 6, "both"), (6, 8, "label")]),
        ((2, 4), (4, 6), [(2, 4, "label"), (4, 6, "predicted")]),
    ],
)
def test_places_of_two_answers(gold, predicted, marks):
    assert list(predictions.marks(gold, predicted)) == marks


def test_the_surest_mistake_comes_first_with_both_answers_marked():
    text, answers = "the red fox ran", ((Answer("red fox", 4),), (), ())
    examples = [SpanExample(str(n), "who?", text, of_one) for n, of_one in enumerate(answers)]
    said = [("the red", 0.5, 0, 7), ("fox", 0.9, 8, 11), ("ran", 0.8, 12, 15)]
    predicted = [Prediction(str(n), *one, 0) for n, one in enumerate(said)]
    first, second = predictions.most_confident(examples, predicted, [False, True, False])
    assert (first["id"], first["label"], first["marks"]) == ("2", ["no answer"], [(12, 15, "predicted")])
    marks = [(0, 4, "predicted"), (4, 7, "both"), (7, 11, "label")]
    values = ("0", text, "who?", ["red fox"], "the red", 0.5, None, marks)
    assert second == dict(zip(("id", "text_a", "text_b", "label", "predicted", "confidence", "error", "marks"), values))
    assert predictions.most_confident(examples, predicted, [False, True, False], kept=1) == [first]
    assert doctest.testmod(predictions) == doctest.testmod(scores) == (0, 1)
