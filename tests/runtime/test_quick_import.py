"""A faster start: imports without optional packages, and rare garbage collection."""

import gc
import subprocess
import sys

import pytest
import tensorflow as tf

from bert_tf.runtime import quick_import

HEAVY = {"PIL", "fsspec", "h5py", "pandas", "scipy", "setuptools"} | ({"keras"} if not hasattr(tf, "estimator") else set())
CODE = """
import sys
from bert_tf.runtime import quick_import
{before}
quick_import.load_ahead()
quick_import.install()
import tensorflow as tf
assert not hasattr(tf, "estimator") or tf.estimator.Estimator
print(*sorted({heavy} & sys.modules.keys()))
assert tf.keras.optimizers.Adam
import pandas, setuptools, distutils  # of setuptools
print("setuptools" in distutils.__file__, pandas.DataFrame([1]).sum()[0], type(tf.__spec__.loader).__name__)
"""


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.several_machines  # processes that import TensorFlow anew
@pytest.mark.parametrize("before", ["", "import pandas"], ids=["by itself", "after pandas"])
def test_tensorflow_is_imported_without_what_is_optional_and_leaves_all_as_it_would(before):
    left, after = printed(CODE.format(before=before, heavy=HEAVY)).splitlines()
    assert not set(left.split()) - ({"pandas"} if before else set())
    assert after == "True 1 SourceFileLoader"


def test_the_collector_stays_on_and_waits_longer():
    before = gc.get_threshold()
    try:
        quick_import.collect_rarely()
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 100 * 700
    finally:
        gc.set_threshold(*before)


def test_nothing_is_collected_at_the_end_of_the_process():
    code = "import atexit, gc; from bert_tf.runtime import quick_import; gc.disable();"
    code += "atexit.register(lambda: print(gc.get_freeze_count() > 1000)); quick_import.collect_rarely()"
    assert printed(code) == "True\n"
