"""What executors of Spark do, without Spark: a function of batches of Arrow."""

import functools
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import pyarrow
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException

import bert_tf
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.extensions.choice.predictions import Prediction as ChoicePrediction
from bert_tf.extensions.cluster import frames, shipped, spark
from bert_tf.extensions.cluster.frames import FrameSettings, Work
from bert_tf.extensions.cluster.spark import Column
from bert_tf.extensions.similarity.predictions import Prediction as PairPrediction
from bert_tf.extensions.span.predictions import Prediction as SpanPrediction
from bert_tf.extensions.tags.predictions import Entity, TagPrediction
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS
from bert_tf.tasks.sentence.family import Prediction

ROWS = [{"text_a": f"train {'red ' * (row % 7)}.", "text_b": "soup ." if row % 3 else "storm ."} for row in range(20)]
PREDICTIONS = {
    CLASSIFICATION: Prediction("1", "a", {"a": 0.75, "b": 0.25}),
    MULTI_LABEL: Prediction("1", ("a", "b"), {"a": 0.75, "b": 0.5}),
    REGRESSION: Prediction("1", 2.5, {}),
    SIMILARITY: PairPrediction("1", 2.5, 0.5),
    SPAN: SpanPrediction("1", "", 0.5, None, None, 0, 1.5),
    TAGS: TagPrediction("1", ("Rome",), ("B-LOC",), (0.75,), (Entity("LOC", "Rome", 0, 4, 0, 1, 0.75),)),
    CHOICE: ChoicePrediction("1", 1, "rain", (0.25, 0.75)),
}


PYTHON = {"Python": f"3.{sys.version_info[1]}"}


@pytest.fixture(scope="module")
def packed(run, tmp_path_factory):
    """A model on its way."""
    return shipped.pack(loading.load(str(run / "model.ckpt-20"), ModelOverrides()), tmp_path_factory.mktemp("sent"))


@pytest.fixture
def _arrived(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "sent", lambda name: str(packed.parent / name))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(spark, "_LOADED", {})


def work(packed, **settings):
    return Work("p", {}, FrameSettings(**settings), packed.name)


def computed(make, rows, kind=CLASSIFICATION):
    """Returns the values of a column, by the function that executors call."""
    column = Column("p", spark.type_of(kind), make, {"text_a": "text_a", "text_b": "text_b"})
    batches = [pyarrow.RecordBatch.from_pylist(rows[:13]), pyarrow.RecordBatch.from_pylist(rows[13:])]
    made = spark._checked(spark._versions(), spark.pickle.dumps(column))(iter(batches))
    return [row for batch in made for row in batch.to_pylist()]


@pytest.mark.usefixtures("_arrived")
def test_rows_keep_their_columns_and_get_what_the_model_predicts(packed, run):
    rows = computed(functools.partial(frames._predictions, work(packed)), ROWS)
    assert [{name: row[name] for name in ("text_a", "text_b")} for row in rows] == ROWS
    with bert_tf.load(run) as model:
        expected = model.predict(ROWS)
    for row, one in zip(rows, expected):
        assert row["p"]["label"] == one.label
        assert dict(row["p"]["probabilities"]) == pytest.approx(one.probabilities, abs=1e-5)


@pytest.mark.usefixtures("_arrived")
def test_a_row_that_cannot_be_used_says_why_and_the_others_are_predicted(packed):
    make = functools.partial(frames._predictions, work(packed, skip_bad_rows=True))
    rows = computed(make, [*ROWS[:3], {"text_a": "rain", "text_b": None}, *ROWS[4:]])
    assert [row["p"]["problem"] for row in rows] == [None] * 3 + ["a text is None"] + [None] * 16
    assert [row["p"]["label"] is None for row in rows] == [number == 3 for number in range(20)]
    with pytest.raises(DataError, match=r"^frame: a text is None; the row is {'text_a': 'rain', 'text_b': None}$"):
        computed(functools.partial(frames._predictions, work(packed)), [*ROWS, {"text_a": "rain", "text_b": None}])


@pytest.mark.parametrize("kind", PREDICTIONS)
def test_predictions_of_each_family_are_a_struct(kind):
    prediction = PREDICTIONS[kind]
    said = {name: spark._plain(getattr(prediction, name)) for name in spark._fields(kind)}
    (struct,) = pyarrow.array([said], spark.type_of(kind)).to_pylist()
    assert struct.pop("problem") is None
    assert {name: _text(value) for name, value in struct.items()} == {name: _text(value) for name, value in said.items()}


def _text(value):
    return str(value).replace("(", "[").replace(")", "]")


def test_a_process_keeps_a_model_until_it_is_given_another(monkeypatch):
    monkeypatch.setattr(spark, "_LOADED", {})
    first = spark.once("a", mock.Mock)
    assert spark.once("a", mock.Mock) is first
    first.close.assert_not_called()
    assert spark.once("b", mock.Mock) is not first
    first.close.assert_called_once()


def test_a_model_that_is_sent_has_all_it_needs_and_a_name_by_its_contents(packed, run, tmp_path):
    again = shipped.pack(loading.load(str(run / "model.ckpt-20"), ModelOverrides()), tmp_path)
    assert (again.name, again.read_bytes()) == (packed.name, packed.read_bytes())


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"Python": "3.7"}, "Python 3."),
        ({**PYTHON, "no_such_package": "0"}, "No module named 'no_such_package'; install the same packages as"),
        ({**PYTHON, "pickle": "9.9"}, "pickle 4.0, and 9.9 where the job starts"),
    ],
)
def test_an_executor_that_is_set_up_otherwise_says_so_in_one_line(tmp_path, expected, message):
    (tmp_path / "function").write_bytes(cloudpickle.dumps(spark._checked(expected, b"")))
    (tmp_path / "pickle.py").write_text("__version__ = '4.0'\n") if "pickle" in expected else None
    code = (
        "from pyspark import cloudpickle\nimport sys\nfunction = cloudpickle.load(open('function', 'rb'))\n"
        "sys.modules.pop('pickle')\nsys.path.insert(0, '.')\nfunction(iter([]))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    last = done.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: executor ")
    assert message in last


@pytest.mark.parametrize("raised", ["bert_tf.errors.DataError: frame: row 1", "RuntimeError: frame: row 1"])
def test_what_an_executor_says_is_one_line(raised):
    error = PythonException(f"\n  An exception was thrown\nTraceback:\n  in f\n{raised}\n")
    with pytest.raises(BertError, match="^frame: row 1$"):
        spark.collected(mock.Mock(**{"collect.side_effect": error}))


@pytest.mark.parametrize(
    ("name", "read", "message"),
    [
        ("p", "text_a", "^output='p': the frame already has a column of this name; give another$"),
        ("new", "body", "^no column 'body' in the frame; there are id, text_a, text_b, p$"),
    ],
)
def test_columns_are_looked_at_before_anything_is_computed(name, read, message):
    column = Column(name, spark.type_of(CLASSIFICATION), dict, {"text_a": read})
    with pytest.raises(FlagError, match=message):
        spark.with_column(SimpleNamespace(columns=("id", "text_a", "text_b", "p")), column)
