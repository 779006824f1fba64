"""What a student learns from a teacher: losses of each head worked out with numpy, token vectors, attention relations."""

import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.config import BertConfig
from bert_tf.extensions.distill.head import LABELLED, STATES, Lesson, Observed, Taught, observed
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT
from bert_tf.head_spec import CHOICE, CLASSIFICATION, CONTRASTIVE, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS, HeadSpec
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions
from tests.graphs import evaluate

T = 2.0
RANDOM = np.random.default_rng(4)
MASK = np.array([[1, 1, 1], [1, 1, 0]], np.int32)


def kl(logits, teacher, axis=-1):
    wanted = special.softmax(teacher / T, axis)
    return T**2 * np.sum(wanted * (special.log_softmax(teacher / T, axis) - special.log_softmax(logits / T, axis)), axis)


def numbers(*shape):
    return RANDOM.normal(0.0, 2.0, shape).astype(np.float32)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def of_tags(student, teacher):
    return np.array([kl(student[0, :2], teacher[0, :2]).sum(), kl(student[1, 1], teacher[1, 1])])


def of_ends(student, teacher):
    first = [kl(student[0, :, end], teacher[0, :, end]) for end in (0, 1)]
    second = [kl(student[1, :2, end], teacher[1, :2, end]) for end in (0, 1)]
    return np.array([np.mean(first), np.mean(second)])


def of_scores(student, teacher):
    target = special.expit(teacher / T)
    losses = -target * special.log_expit(student / T) - (1 - target) * special.log_expit(-student / T)
    return T**2 * losses.mean(axis=-1)


def of_options(student, teacher):
    """Two rows are the options of a question."""
    return -(T**2) * special.softmax(teacher / T) * special.log_softmax(student / T)


def of_vectors(student, teacher):
    return np.full(2, np.mean(np.sum((unit(student) - unit(teacher)) ** 2, axis=-1)) / 2)  # both rows are of one pair


CASES = {
    CLASSIFICATION: (HeadSpec(3), "logits", numbers(2, 3), numbers(2, 3), {}, kl),
    REGRESSION: (
        *(HeadSpec(1, REGRESSION), "logits", numbers(2, 1), numbers(2, 1), {}),
        lambda student, teacher: (student - teacher)[:, 0] ** 2,
    ),
    MULTI_LABEL: (HeadSpec(3, MULTI_LABEL), "logits", numbers(2, 3), numbers(2, 3), {}, of_scores),
    CHOICE: (
        *(HeadSpec(1, CHOICE), "logits", numbers(2), numbers(2), {"groups": [0, 0], "begins": [True, True]}),
        of_options,
    ),
    TAGS: (HeadSpec(2, TAGS), "logits", numbers(2, 3, 2), numbers(2, 3, 2), {"tag_ids": [[1, 0, -1], [-1, 0, -1]]}, of_tags),
    SPAN: (HeadSpec(2, SPAN), "span_logits", numbers(2, 3, 2), numbers(2, 3, 2), {"is_counted": [1.0, 1.0]}, of_ends),
    SIMILARITY: (HeadSpec(1, SIMILARITY), "vectors", numbers(2, 4), numbers(2, 4), {"groups": [0, 0]}, of_vectors),
    CONTRASTIVE: (
        HeadSpec(1, CONTRASTIVE, (("temperature", 0.05),)),
        *("vectors", numbers(2, 4), numbers(2, 4), {"groups": [0, 0]}, of_vectors),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_head_compares_its_outputs_with_a_teachers(kind):
    spec, name, output, teacher, more, expected = CASES[kind]
    if kind == SPAN:
        output = np.where(MASK[:, :, None], output, np.float32(-1e30))  # as the head computes it

    def losses(student):
        features = {"input_mask": tf.constant(MASK), **{key: tf.constant(value) for key, value in more.items()}}
        return heads.make_head(spec).soft_losses({name: tf.constant(student)}, {name: tf.constant(teacher)}, features, T)

    np.testing.assert_allclose(evaluate(lambda: losses(output)), expected(output, teacher), rtol=1e-4, atol=1e-6)
    if kind == SPAN:
        return
    apart, same = (np.sum(evaluate(lambda student=student: losses(student))) for student in (output, teacher))
    assert same < apart


def test_vectors_of_other_sizes_are_compared_by_their_cosines():
    student, teacher = numbers(4, 3), numbers(4, 5)

    def losses():
        vectors = ({"vectors": tf.constant(one)} for one in (student, teacher))
        return heads.make_head(HeadSpec(1, SIMILARITY)).soft_losses(*vectors, {"groups": tf.constant([0, 0, 1, 1])}, T)

    cosines = [unit(vectors) @ unit(vectors).T for vectors in (student, teacher)]
    of_rows = np.mean((cosines[0] - cosines[1]) ** 2, axis=1)
    np.testing.assert_allclose(evaluate(losses), np.repeat(of_rows.reshape(2, 2).mean(axis=1) / 2, 2), rtol=1e-4)


CONFIG = BertConfig.tiny(vocab_size=30)
IDS = np.array([[2, 5, 6], [3, 7, 0]], np.int32)


def taught(lesson, teacher_width, labelled=(1.0, 0.0), config=CONFIG):
    """Losses, outputs and weights of a student of two layers on random targets."""
    random = np.random.default_rng(0)
    teacher = {
        "teacher_logits": random.normal(size=(2, 2)).astype(np.float16),
        "teacher_states": random.normal(size=(2, 3, teacher_width)).astype(np.float16),
    }
    features = {
        "input_ids": IDS,
        "input_mask": MASK,
        "segment_ids": np.zeros_like(IDS),
        "label_ids": np.array([1, 0], np.int32),
        GLOBAL_WEIGHT: np.int32(2),
        GLOBAL_ROWS: np.int32(2),
        LABELLED.name: np.array(labelled, np.float32),
        **teacher,
    }

    def build():
        given = {name: tf.constant(value) for name, value in features.items()}
        execution = Execution()
        encoded = bert(given["input_ids"], given["input_mask"], given["segment_ids"], config, execution)
        head = Taught(heads.make_head(HeadSpec(2)), lesson)
        outputs = head.compute(encoded, given, config, execution)
        variables = {variable.op.name: variable for variable in tf.compat.v1.trainable_variables()}
        return head.losses(outputs, given, LossOptions()), outputs["logits"], encoded.layers[-2], variables

    return evaluate(build), teacher


def test_rows_without_labels_learn_from_the_teacher_alone():
    (losses, logits, *_), teacher = taught(Lesson(T, 1.0, 0.5, 0.0, 0.0), 16)
    soft = kl(logits, teacher["teacher_logits"].astype(np.float64))
    of_label = -special.log_softmax(logits[0])[1]
    np.testing.assert_allclose(losses, [soft[0] + 0.5 * of_label, soft[1]], rtol=1e-3)


def test_token_vectors_are_compared_without_padding_in_the_teachers_units():
    (losses, logits, states, variables), teacher = taught(Lesson(T, 1.0, 0.0, 3.0, 0.0, squared_length=7.0), CONFIG.hidden_size)
    distances = np.sum((states - teacher["teacher_states"].astype(np.float32)) ** 2, axis=-1)
    expected = 3.0 / 7.0 * np.array([distances[0].mean(), distances[1, :2].mean()])
    np.testing.assert_allclose(losses - kl(logits, teacher["teacher_logits"].astype(np.float64)), expected, rtol=1e-3)
    assert "head/teacher_states/kernel" not in variables
    (losses, logits, states, variables), teacher = taught(Lesson(T, 1.0, 0.0, 1.0, 0.0), 20)
    mapped = states @ variables["head/teacher_states/kernel"]
    distances = np.sum((mapped - teacher["teacher_states"].astype(np.float32)) ** 2, axis=-1)
    expected = [distances[0].mean(), distances[1, :2].mean()]
    np.testing.assert_allclose(losses - kl(logits, teacher["teacher_logits"].astype(np.float64)), expected, rtol=1e-3)


def relations(vectors, count):
    """Relations of the tokens of one row: [heads, T, T]."""
    cut = np.stack(np.split(vectors, count, axis=-1))
    return special.log_softmax(cut @ cut.transpose(0, 2, 1) / math.sqrt(cut.shape[-1]), axis=-1)


def test_attention_relations_of_the_last_layer():
    width, names = 24, ("query", "key", "value")
    random = np.random.default_rng(1)
    projections = {
        name: (random.normal(size=(width, width)).astype(np.float32), random.normal(size=width).astype(np.float32))
        for name in names
    }
    (losses, logits, states, variables), teacher = taught(Lesson(T, 1.0, 0.0, 0.0, 2.0, projections=projections), width)
    scope, count = f"bert/encoder/layer_{CONFIG.num_hidden_layers - 1}/attention/self", CONFIG.num_attention_heads
    expected = []
    for row, length in enumerate((3, 2)):
        terms = []
        for name in names:
            own = states[row, :length] @ variables[f"{scope}/{name}/kernel"] + variables[f"{scope}/{name}/bias"]
            kernel, bias = projections[name]
            wanted = relations(teacher["teacher_states"][row, :length].astype(np.float32) @ kernel + bias, count)
            terms.append(np.mean(np.sum(np.exp(wanted) * (wanted - relations(own, count)), axis=-1)))
        expected.append(2.0 * np.mean(terms))
    np.testing.assert_allclose(losses - kl(logits, teacher["teacher_logits"].astype(np.float64)), expected, rtol=2e-3)


def test_a_teacher_puts_out_what_enters_its_last_layer():
    def build():
        features = {"input_ids": tf.constant(IDS), "input_mask": tf.constant(MASK), "segment_ids": tf.zeros_like(IDS)}
        encoded = bert(*features.values(), CONFIG, Execution())
        head = Observed(heads.make_head(HeadSpec(2)))
        assert [field.name for field in head.outputs] == ["logits", STATES.name]
        return head.compute(encoded, features, CONFIG, Execution())[STATES.name], encoded.layers[-2]

    output, states = evaluate(build)
    np.testing.assert_array_equal(output, states.astype(np.float16))
    field = observed(STATES, 16)
    assert (field.name, field.width, field.dtype) == ("teacher_states", 16, np.float16)
