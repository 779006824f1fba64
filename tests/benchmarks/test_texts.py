"""Files for the workers hold the examples that they are made of."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.texts import TEXTS
from bert_tf.tasks.base import TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values


@pytest.mark.parametrize("kind", ["questions", "words"])
def test_a_file_of_a_task_is_read_as_the_examples_that_it_holds(kind, materials):
    path = materials.texts(kind)
    read = get_task(TEXTS[kind].task, of_values({"train_file": str(path)})).examples("", TRAIN)

    def said(examples):
        return sorted((example.texts, example.label) for example in examples)

    assert said(read) == said(materials.examples(kind))


def test_questions_of_a_paragraph_have_one_context(materials):
    (articles,) = json.loads(materials.texts("questions").read_text(encoding="utf-8"))["data"][-1:]
    assert sum(len(paragraph["qas"]) for paragraph in articles["paragraphs"]) > len(articles["paragraphs"])


def test_tags_are_those_of_the_family(materials):
    rows = [json.loads(line) for line in materials.texts("words").read_text(encoding="utf-8").splitlines()]
    assert {tag for row in rows for tag in row["tags"]} <= set(materials.task("words").family.labels)
    assert dataclasses.is_dataclass(materials.examples("words")[0])
