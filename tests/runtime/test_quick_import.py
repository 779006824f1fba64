from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

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


@pytest.fixture(params=["", "import pandas"], ids=["by itself", "after pandas"])
def said(request):
    code = CODE.format(before=request.param, heavy=HEAVY)
    return request.param, subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_tensorflow_is_imported_without_what_is_optional_and_leaves_all_as_it_would(said):
    before, printed = said
    left, after = printed.splitlines()
    assert not set(left.split()) - ({"pandas"} if before else set())
    assert after == "True 1 SourceFileLoader"
