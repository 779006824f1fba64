"""Settings of a service, by name."""

from __future__ import annotations

import pytest

from bert_tf.errors import FlagError
from bert_tf.service.settings import configured


def test_each_goes_to_its_group():
    config = configured(
        "out",
        port=1,
        workers=2,
        max_rows=3,
        grace_s=4,
        task_name="MRPC",
        pooling="cls",
        max_seq_length=64,
        precision="bfloat16",
    )
    assert (config.address.port, config.computing.workers, config.limits.max_rows, config.patience.grace_s) == (1, 2, 3, 4.0)
    assert (config.task_name, config.vectors) == ("MRPC", {"pooling": "cls", "layers": (-1,)})
    assert config.loading == {"max_seq_length": 64, "precision": "bfloat16"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prot": 1}, "unknown setting 'prot'; did you mean port"),
        ({"port": 65_536}, "--port=65536: not a number up to 65535"),
        ({"workers": 0}, "--workers=0: expected at least 1"),
        ({"max_delay_ms": float("nan")}, "--max_delay_ms=nan: not a number"),
        ({"layers": "x"}, "--layers=x: write whole numbers"),
        ({"host": ""}, "--host is empty"),
    ],
)
def test_what_cannot_be_is_one_line(values, message):
    with pytest.raises(FlagError, match=message):
        configured("out", **values)
