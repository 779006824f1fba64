"""Forecasts of the memory of low-rank updates: beside real steps, by hand, and by the command."""

import json
import math

import pytest

import bert_tf
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.extensions.lora import LoraSettings, chosen
from bert_tf.extensions.lora.part import LowRank
from bert_tf.extensions.memory_plan import command
from bert_tf.profiling.forecast.compute_options import ComputeOptions, with_adapted
from bert_tf.profiling.forecast.step_peak import forecast
from tests.profiling import steps
from tests.profiling.forecast.test_step_peak import check

RANK_8 = LoraSettings(lora_rank=8)
WAYS = [
    (LoraSettings(lora_rank=8, lora_targets="all"), {"padding": 0.3}, (128, 2, 256, 4)),
    (LoraSettings(lora_rank=4, lora_train="norms,pooler"), {}, (128, 4, 128, 8)),
    (RANK_8, {"micro_batches": 4}, (128, 2, 128, 16)),
]


@pytest.mark.parametrize(("settings", "changes", "sizes"), WAYS)
def test_forecasts_the_live_peak_of_operations_in_turn(settings, changes, sizes):
    hidden, layers, tokens, batch_size = sizes
    model = steps.config(hidden, layers)
    options = ComputeOptions(**{**changes, "on_gpu": False})
    shapes, frozen = encoder_shapes(model), options.frozen
    whole = chosen.whole(settings, model, frozen)
    adaptation = LowRank(
        settings.lora_rank, settings.scaling, chosen.matrices(settings, model, frozen), frozenset(shapes) - whole
    )
    options = with_adapted(options, {"lora": settings}, model)
    memory, state = steps.memory_of(model, tokens, batch_size, options, steps.CLASSIFIER, in_turn=True, adaptation=adaptation)
    check(forecast(model, tokens, batch_size, options), state, memory.peak)


def test_weights_slots_and_gradients_by_hand():
    """2 layers of 8, of which queries and values have updates of rank 8: 4 of 8 x 8 and 8 x 8; head and pooler."""
    model = BertConfig.tiny()
    plain, adapted = (forecast(model, 5, 2, with_adapted(ComputeOptions(), asked, model)) for asked in ({}, {"lora": RANK_8}))
    assert adapted.weights - plain.weights == 4 * 4 * (8 * 8 + 8 * 8)
    assert adapted.slots == 2 * 4 * (4 * (8 * 8 + 8 * 8) + 2 * 8 + 2 + 8 * 8 + 8)


def test_layers_that_begin_anew_are_trained_themselves():
    """The upper of 2 layers: one query and one value of 8 x 8 have an update of rank 8, the layer has slots of its own."""
    model, asked = BertConfig.tiny(), {"lora": RANK_8}
    new = frozenset({"pooler", 1})
    adapted = forecast(model, 5, 2, with_adapted(ComputeOptions(), asked, model, new))
    layer = sum(math.prod(shape) for name, shape in encoder_shapes(model).items() if "/layer_1/" in name)
    assert adapted.slots == 2 * 4 * (2 * (8 * 8 + 8 * 8) + layer + 2 * 8 + 2 + 8 * 8 + 8)


LARGE = BertConfig(30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)


def test_the_command_forecasts_updates(tmp_path):
    """BERT-Large on a GPU of 6 GB, which all of its weights exceed."""
    file = tmp_path / "bert_config.json"
    file.write_text(LARGE.to_json())
    step = {"bert_config_file": str(file), "gpu_memory_mb": 5175, "max_seq_length": 64, "train_batch_size": 12}
    whole, updates = bert_tf.memory_plan(**step), bert_tf.memory_plan(**step, lora_rank=8)
    assert (whole.fits, updates.fits) == (False, True)
    assert updates.found.slots < whole.found.slots / 150
    assert updates.found.gradients < whole.found.gradients / 150
    assert "fits, " in str(updates)
    adapted = json.loads(command.as_json(updates))["options"]["adapted"]
    assert (adapted["reads"], len(adapted["added"])) == ([], 24)
    with pytest.raises(FlagError, match="--lora_targets: needs --lora_rank"):
        bert_tf.memory_plan(**step, lora_targets="all")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"lora_rank": 5000}, "--lora_rank=5000: above 1024, the width of the model's matrices"),
        ({"lora_rank": 8, "freeze": "0-23"}, "no layer is left for the updates of --lora_rank; name fewer of the 24 layers"),
    ],
)
def test_what_training_refuses_is_not_planned(flags, message, tmp_path):
    (tmp_path / "bert_config.json").write_text(LARGE.to_json())
    with pytest.raises(FlagError, match=message):
        bert_tf.memory_plan(bert_config_file=str(tmp_path / "bert_config.json"), gpu_memory_mb=5175, **flags)
