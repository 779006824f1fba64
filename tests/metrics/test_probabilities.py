from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bert_tf.metrics import probabilities

LOGITS = np.log([[1.0, 3.0], [2.0, 2.0]])


def test_probabilities_of_classes_and_their_logarithms():
    assert probabilities.softmax(LOGITS) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert np.exp(probabilities.log_softmax(LOGITS)) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


def test_probabilities_of_labels():
    assert probabilities.sigmoid(LOGITS) == pytest.approx(np.array([[1 / 2, 3 / 4], [2 / 3, 2 / 3]]))


def test_settings_and_tasks_are_there_without_scipy():
    code = "import sys; import bert_tf.operations.fine_tune; print(sorted({'scipy', 'sklearn'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
