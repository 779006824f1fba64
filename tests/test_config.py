"""Reading and checking the architecture."""

import dataclasses

import pytest

from bert_tf.config import ACTIVATIONS, BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import ConfigError

PUBLISHED = {"vocab_size": 100, "hidden_size": 12, "num_hidden_layers": 2}
PUBLISHED |= {"num_attention_heads": 3, "intermediate_size": 20, "hidden_act": "gelu"}
SIZES = [name for name in PUBLISHED if name != "hidden_act"]


def test_published_keys_become_fields():
    config = BertConfig(vocab_size=100)
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (768, 12, 12)
    assert config.intermediate_size == 3072
    read = BertConfig.from_dict(PUBLISHED)
    assert {name: getattr(read, name) for name in SIZES} == {name: PUBLISHED[name] for name in SIZES}
    assert read.head_size == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.hidden_size = 16


def test_keys_of_other_purposes_are_ignored():
    other = {"directionality": "bidi", "pooler_type": "first_token_transform", "torch_dtype": "float32"}
    assert BertConfig.from_dict({**PUBLISHED, **other}) == BertConfig.from_dict(PUBLISHED)


@pytest.mark.parametrize("missing", [*([name] for name in SIZES), SIZES[2:]], ids=str)
def test_missing_keys_are_named_at_once(missing):
    with pytest.raises(ConfigError) as caught:
        BertConfig.from_dict({key: value for key, value in PUBLISHED.items() if key not in missing})
    assert str(caught.value) == f"missing {', '.join(missing)}; is this a BERT configuration?"


HUGGING_FACE = (
    ("model_type", "bert"),
    ("architectures", ["BertModel"]),
    ("transformers_version", "4.0.0"),
    ("layer_norm_eps", 1e-12),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "gelu_tanh"),  # "gelu" of the published code is the tanh approximation
        *(({name: value}, "gelu_erf") for name, value in HUGGING_FACE),
        *(({"model_type": "bert", "hidden_act": name}, "gelu_tanh") for name in ("gelu_new", "gelu_pytorch_tanh")),
    ],
    ids=str,
)
def test_gelu_is_that_of_its_origin_named_or_absent(values, expected):
    assert BertConfig.from_dict({**PUBLISHED, **values}).hidden_act == expected
    absent = {name: PUBLISHED[name] for name in SIZES}
    assert BertConfig.from_dict({**absent, **values}).hidden_act == expected


ACTIVATIONS_KNOWN = "gelu_tanh, gelu_erf, relu, tanh, linear (or gelu)"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(
            ("hidden_act", one, f"hidden_act is {one!r}, expected one of {ACTIVATIONS_KNOWN}")
            for one in ("swish", None, 1, ["gelu"])
        ),
        ("model_type", ["bert"], "model_type is ['bert'], only bert"),
        (
            "model_type",
            "gpt2",
            "model_type is 'gpt2', only bert, electra, distilbert, roberta, xlm-roberta, camembert, albert, mpnet, deberta-v2,"
            " modernbert can be loaded",
        ),
        ("vocab_size", 0, "vocab_size is 0, expected at least 1"),
        ("num_hidden_layers", 10**9, "num_hidden_layers is too large, expected at most 1000"),
        ("vocab_size", 10**400, "vocab_size is too large, expected at most 16777216"),
        ("num_hidden_layers", -1, "num_hidden_layers is -1, expected at least 1"),
        ("hidden_size", 12.0, "hidden_size is 12.0, expected a number"),
        ("hidden_size", "12", "hidden_size is '12', expected a number"),
        ("type_vocab_size", True, "type_vocab_size is True, expected a number"),
        ("intermediate_size", None, "intermediate_size is None, expected a number"),
        ("hidden_dropout_prob", 1.0, "hidden_dropout_prob is 1.0, expected a rate in [0, 1)"),
        ("attention_probs_dropout_prob", -0.1, "attention_probs_dropout_prob is -0.1, expected a rate in [0, 1)"),
        ("hidden_dropout_prob", float("nan"), "hidden_dropout_prob is nan, expected a rate in [0, 1)"),
        ("initializer_range", 0.0, "initializer_range is 0.0, expected a positive number"),
        ("layer_norm_eps", -1e-12, "layer_norm_eps is -1e-12, expected a positive number"),
        ("layer_norm_eps", float("nan"), "layer_norm_eps is nan, expected a positive number"),
        ("initializer_range", float("inf"), "initializer_range is inf, expected a positive number"),
        ("num_attention_heads", 5, "hidden_size 12 is not a multiple of num_attention_heads 5"),
        ("position_embedding_type", "relative_key", "position_embedding_type must be 'absolute'"),
    ],
)
def test_unusable_value_is_named(name, value, expected):
    with pytest.raises(ConfigError) as caught:
        BertConfig.from_dict({**PUBLISHED, name: value})
    assert str(caught.value).startswith(expected)


DEBERTA = {"relative_attention": True, "position_biased_input": False, "pos_att_type": "p2c|c2p", "share_att_key": True}
DEBERTA |= {"norm_rel_ebd": "layer_norm", "position_buckets": 8}
OF_OTHERS = [
    ("modernbert", {"position_embedding_type": "sans_pos"}, {}),  # mmBERT
    ("bert", {"position_embedding_type": None}, {}),
    ("modernbert", {"local_rope_theta": None, "global_rope_theta": 7.0, "rope_scaling": {}}, {"window_rotary_base": 7.0}),
    ("modernbert", {"local_attention": 0}, "local_attention is 0, expected at least 2"),
    ("modernbert", {"local_attention": 5}, "local_attention is 5, expected an even number"),
    ("modernbert", {"norm_eps": -1}, "norm_eps is -1, expected a positive number"),
    ("distilbert", {"layer_norm_eps": 0.1, "type_vocab_size": 2}, {"layer_norm_eps": 1e-12, "type_vocab_size": 0}),
    ("bert", {"hidden_act": "gelu_fast"}, {"hidden_act": "gelu_tanh"}),
    ("electra", {}, {"embedding_size": 128}),
    *(
        (kind, rates, {"classifier_dropout_prob": rate})
        for kind, rates, rate in (
            ("bert", {"classifier_dropout": 0.3}, 0.3),
            ("electra", {"classifier_dropout": None, "hidden_dropout_prob": 0.0}, 0.0),
            ("roberta", {"hidden_dropout_prob": 0.2, "type_vocab_size": 1}, 0.2),
            ("mpnet", {"hidden_dropout_prob": 0.05}, 0.05),
            ("distilbert", {"dropout": 0.3}, 0.2),
            ("albert", {"hidden_dropout_prob": 0.0}, 0.1),
            ("deberta-v2", {**DEBERTA, "cls_dropout": 0.3}, 0.3),
            ("modernbert", {}, 0.0),
        )
    ),
    ("bert", {"hidden_act": "gelu_python"}, {"hidden_act": "gelu_erf"}),
]


@pytest.mark.parametrize(("kind", "values", "expected"), OF_OTHERS)
def test_other_types_read_what_transformers_reads_and_name_its_keys(kind, values, expected):
    keys = ENCODERS[kind].keys
    sizes = {keys.get(name, name): value for name, value in PUBLISHED.items() if isinstance(value, int)}
    whole = {**sizes, "model_type": kind, "type_vocab_size": 0, **values}
    if isinstance(expected, str):
        with pytest.raises(ConfigError, match=f"^{expected}"):
            BertConfig.from_dict(whole, source="huggingface")
    else:
        config = BertConfig.from_dict(whole, source="huggingface")
        assert {name: getattr(config, name) for name in expected} == expected


def test_dropout_may_be_zero():
    assert BertConfig.from_dict({**PUBLISHED, "hidden_dropout_prob": 0}).hidden_dropout_prob == 0


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])  # without or with byte order mark
def test_written_text_is_read_back_unchanged(tmp_path, activation, encoding):
    config = dataclasses.replace(BertConfig.tiny(), hidden_act=activation)
    path = tmp_path / "bert_config.json"
    path.write_text(config.to_json(), encoding=encoding)
    assert BertConfig.from_json_file(path) == config


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, ": cannot read the configuration: No such file or directory"),
        (b"", ":1: not JSON: "),
        (b'{"vocab_size": 100,', ":1: not JSON: "),
        (b'{"a": "\xff"}', ":1: not UTF-8"),
        (b'{"vocab_size": 100,\n"vocab_size": 200}', ":2: the key 'vocab_size' appears twice"),
        (b"[" * 2000 + b"]" * 2000, ": nested more than 64 deep"),
        (b"[1, 2]", ": expected a JSON object"),
        (b'{"vocab_size": 100}', ": missing hidden_size, num_hidden_layers"),
    ],
)
def test_damaged_file_is_named_with_its_problem(tmp_path, data, problem):
    path = tmp_path / "bert_config.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        BertConfig.from_json_file(path)
    assert str(caught.value).startswith(f"{path}{problem}")


def test_a_bert_is_recorded_as_by_earlier_versions():
    fields = BertConfig(vocab_size=9).as_dict()
    assert not fields.keys() & {"model_type", "embedding_size", "pooler_act"}
    assert BertConfig(vocab_size=9, model_type="electra", embedding_size=3).as_dict() == {
        **fields,
        "model_type": "electra",
        "embedding_size": 3,
    }


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "camembert", "mpnet"])
def test_rows_of_padding_are_no_positions_although_the_file_does_not_name_the_padding(kind):
    values = {**dataclasses.asdict(BertConfig.tiny()), "model_type": kind, "type_vocab_size": 1}
    assert BertConfig.from_dict(values, source="huggingface").max_position_embeddings == 62
    assert BertConfig.from_dict(values).max_position_embeddings == 64  # our own file
