"""What a client runs: TensorFlow, TensorFlow Text and a SavedModel, nothing else. Requests and answers are JSON."""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  (brings the operations of the graph)


def plain(value):
    return value.decode() if isinstance(value, bytes) else [plain(one) for one in value] if isinstance(value, list) else value


def answer(folder, calls):
    signatures = tf.saved_model.load(folder).signatures
    for name, inputs in calls.items():
        outputs = signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        yield name, {key: plain(value.numpy().tolist()) for key, value in outputs.items()}


requests = json.load(sys.stdin)
answers = {folder: dict(answer(folder, calls)) for folder, calls in requests.items()}
foreign = sorted(name for name in sys.modules if name.partition(".")[0] in ("bert_tf", "tests", "tensorflow_estimator"))
json.dump({"answers": answers, "foreign": foreign}, sys.stdout)
