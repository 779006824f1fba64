"""Rows that a program has in memory as a task: lists, iterators, data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, REGRESSION, TAGS
from bert_tf.settings import named, settings_of
from bert_tf.tasks import tables
from bert_tf.tasks.base import DEV, PURPOSES, TEST, TRAIN, Family
from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.custom import NAME
from bert_tf.tasks.label_column import sorted_names
from bert_tf.tasks.sentence.example import KINDS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics
from bert_tf.tasks.sentence.rows import name_of, names_of, read_rows, records
from bert_tf.tasks.settings import PATHS
from bert_tf.tasks.similarity.family import ContrastiveFamily, SimilarityFamily
from bert_tf.tasks.similarity.settings import SimilaritySettings
from bert_tf.tasks.span.family import SpanFamily
from bert_tf.tasks.span.settings import SpanSettings
from bert_tf.tasks.tags.family import TagFamily
from bert_tf.tasks.tags.rows import found_labels


class RowsTask:
    """Rows in memory, of any family.

    task = RowsTask(family, train=rows, dev=more)
    """

    name, reads_folder = NAME, False

    def __init__(
        self,
        family: Family,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          family: what is learned; says of which form rows are.
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.

        Raises:
          DataError: a row is of another form; names split and row.
        """
        self.family = family
        given = {TRAIN: train, DEV: dev, TEST: test}
        self._examples: dict[str, Sequence[Any]] = {
            split: family.from_rows(rows, split, labelled=split != TEST) for split, rows in given.items() if rows is not None
        }

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself.

        Raises:
          DataError: it has no rows, or is none of train, dev and test.
        """
        del data_dir
        if purpose not in PURPOSES:
            raise DataError(unknown_name("split", purpose, PURPOSES), purpose)
        if not self._examples.get(purpose):
            kind = type(self).__name__
            raise DataError(f"the task has no such rows; give {kind}({purpose}=...), or rows to Model.evaluate", purpose)
        return (purpose,)

    def file(self, data_dir: object, split: str) -> Path:
        """Returns what messages call a split; there is no file."""
        del data_dir
        return Path(f"rows of {split}")

    def examples(self, data_dir: object, split: str) -> Sequence[Any]:
        """Returns the rows of a split.

        Raises:
          DataError: it has none.
        """
        return self._examples[self.splits(data_dir, split)[0]]

    def stream(self, source: tables.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        """Reads no file: models of sentences read tables as the task custom.

        Raises:
          DataError: always.
        """
        del split, report
        raise DataError("the task has rows in memory, and reads no file", source)

    def published_name(self, split: str) -> str:
        """Returns the name of the split."""
        return split

    def submission(self, split: str) -> None:
        """No server knows it."""


class SentenceTask(RowsTask):
    """Sentences or pairs with labels, from rows in memory.

    A row is a sequence, (text, label) or (text, second text, label); or a mapping, or a row of a pandas data frame: its keys
    are `text` or `sentence`, or `text_a` and `text_b`, or `sentence1` and `sentence2`, and `label`; it may have an `id`. Rows
    to be predicted have no label: a text, (text,) or (text, second text).

        task = SentenceTask(train=[("Rain all day.", "weather"), ("Salt the soup.", "food")])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Iterable[Any] | None = None,
        problem: str = CLASSIFICATION,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.
          labels: their names, the position is the class index; those of `train`, sorted, where they are not given.
          problem: what the label is: classification (a name), regression (a number) or multi_label (a list of names).

        Raises:
          FlagError: the problem is unknown, or labels are not different names; a regression has none.
          DataError: a row is not of the form above, a label unknown or of another kind; names split and row. Or labels are not
            given, and `train` has none to tell apart.
        """
        if problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', problem, KINDS)}")
        names = _named(labels, problem)
        if names or problem == REGRESSION:
            super().__init__(_family(names, problem), train, dev, test)
        else:
            examples = read_rows(() if train is None else train, TRAIN, kind=problem)
            super().__init__(_family(_found(examples, problem), problem), dev=dev, test=test)
            self._examples[TRAIN] = examples


def _family(labels: tuple[str, ...], kind: str) -> SentenceFamily:
    return SentenceFamily(labels, kind, usual_metrics(kind, labels))


def _found(examples: Iterable[SentenceExample], kind: str) -> tuple[str, ...]:
    """Returns the names of the labels of training rows, sorted."""
    labels = sorted_names({name for example in examples for name in names_of(example.label)})
    if len(labels) < (2 if kind == CLASSIFICATION else 1):
        found = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
        raise DataError(f"{found}; there is nothing to tell apart: give labels=(...) or other rows", TRAIN)
    return labels


def _named(labels: Iterable[Any] | None, kind: str) -> tuple[str, ...]:
    """Returns the names of `labels`, which may be numbers as in rows; none where they are not given."""
    if labels is None:
        return ()
    try:
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise ValueError("give a list of names")
        names = tuple(map(name_of, labels))
        if len(set(names)) < len(names):
            raise ValueError("a name is repeated")
    except (ValueError, tables.RowError) as error:
        raise FlagError(f"labels={labels!r:.80}: {error}") from error
    if kind == REGRESSION and names:
        raise FlagError(f"labels: with problem={REGRESSION} labels are numbers, none are listed")
    if kind == CLASSIFICATION and len(names) == 1:
        raise FlagError(f"labels={labels!r:.80}: give two at least")
    return names


class SpanTask(RowsTask):
    """Questions with texts that hold their answers, from rows in memory.

    A row is a mapping, or a row of a pandas data frame, with `question`, `context`, `answer`, and `start`, its first character,
    where the answer occurs more than once; or a sequence of these. Rows to be predicted have no answer.

        task = SpanTask(train=[{"question": "Who left?", "context": "Ann left early.", "answer": "Ann"}])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.
          **settings: those of `SpanSettings`, as `doc_stride=64` or `version_2_with_negative=True`.

        Raises:
          FlagError: a setting is unknown or has an unusable value.
          DataError: a row is not of the form above; names split and row.
        """
        known = [row for row in settings_of(SpanSettings) if row.name not in PATHS]
        super().__init__(SpanFamily.from_settings(SpanSettings(**named(known, settings))), train, dev, test)


class TagTask(RowsTask):
    """Words with tags, from rows in memory: pairs of words and tags, or mappings with `tokens` and `tags`.

    task = TagTask(train=[(["Ann", "left", "Rome"], ["B-PER", "O", "B-LOC"])])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Iterable[str] | None = None,
        constrained_decoding: bool = False,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict: words, or texts.
          labels: the tags that there are, of entities in IOB2; those of `train` where they are not given.
          constrained_decoding: whether tags of a sentence are legal together.

        Raises:
          FlagError: tags are given that are not different names.
          DataError: a row is not of the form above, or has an unknown tag; names split and row. Or no tags are given, and
            `train` has none to tell apart.
        """
        rows = list(() if train is None else records(train, TRAIN))
        given = _named(labels, TAGS) or found_labels(rows, TRAIN)
        super().__init__(TagFamily(given, constrained_decoding), None if train is None else rows, dev, test)


class ChoiceTask(RowsTask):
    """Questions with options of which one is right, from rows in memory.

    A row is a mapping with `context` or `passage`, `question`, `options`, and `answer`: its number, letter or text.

        task = ChoiceTask(train=[{"context": "It rains.", "question": "", "options": ["We stay in.", "We swim."], "answer": 0}])
    """

    def __init__(
        self, train: Iterable[Any] | None = None, dev: Iterable[Any] | None = None, test: Iterable[Any] | None = None
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.

        Raises:
          DataError: a row is not of the form above; names split and row.
        """
        super().__init__(ChoiceFamily(), train, dev, test)


class SimilarityTask(RowsTask):
    """Pairs of texts with scores, of which vectors are learned: (text, second text, score), from rows in memory.

    task = SimilarityTask(train=[("He left.", "He went away.", 4.8)], highest_score=5)
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        highest_score: float = 1.0,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without scores.
          highest_score: of pairs that say the same; the lowest is 0.

        Raises:
          FlagError: the score is none.
          DataError: a row is not of the form above; names split and row.
        """
        given = named(settings_of(SimilaritySettings), {"highest_score": highest_score})
        super().__init__(SimilarityFamily(**given), train, dev, test)


class ContrastiveTask(RowsTask):
    """Pairs of texts that belong together, told apart from all others by their vectors: (text, second text).

    task = ContrastiveTask(train=[("Who wrote it?", "Ann did.")])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        temperature: float = 0.05,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict.
          temperature: that cosines are divided by in the loss.

        Raises:
          FlagError: the temperature is none.
          DataError: a row is not of the form above; names split and row.
        """
        given = named(settings_of(SimilaritySettings), {"temperature": temperature})
        super().__init__(ContrastiveFamily(**given), train, dev, test)
