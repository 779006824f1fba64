from __future__ import annotations

import json
import math

import numpy as np

from bert_tf import json_text

NOT_NUMBERS = {"a": math.nan, "b": [math.inf, (1.5, -math.inf)], "c": {"d": np.float64("nan")}}


def test_what_is_no_number_is_null_at_any_depth():
    assert json_text.dumps(NOT_NUMBERS) == '{"a": null, "b": [null, [1.5, null]], "c": {"d": null}}'


def test_everything_else_is_as_json_writes_it():
    value = {"b": [1, 2.5, True, None, "é"], "a": {"x": ()}}
    assert json_text.dumps(value, indent=2, sort_keys=True) == json.dumps(value, indent=2, sort_keys=True)
