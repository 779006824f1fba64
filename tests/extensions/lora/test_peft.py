"""Adapters in PEFT's format: theirs read, computed, differentiated and written back.

`benchmarks/peers/write_peft_oracle.py` made them.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import bert_tf
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import digest
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader, model_reader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator import run_folder
from bert_tf.extensions.engines import converted
from bert_tf.extensions.lora import adapter, opening, peft_format
from bert_tf.extensions.lora.composed import scopes
from bert_tf.extensions.lora.names import DOWN, UP
from bert_tf.extensions.lora.part import LowRank
from bert_tf.head_spec import CHOICE, CLASSIFICATION, REGRESSION, SPAN, TAGS, HeadSpec
from bert_tf.io import files
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import trains_pooler
from bert_tf.tasks import families
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.training import sources
from tests import huggingface, tiny, torch_files
from tests.graphs import evaluate
from tests.modeling import test_encoders_oracle as encoders

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
ORACLE = dict(np.load(Path(__file__).with_name("peft_oracle.npz")))
KINDS = ("bert", "roberta", "electra", "distilbert", "modernbert", "deberta-v2")
SCALINGS = {"bert": 1.5, "roberta": 3 / 2**0.5, "electra": 1.5, "modernbert": 1.5, "deberta-v2": 1.5}  # 3 / 2, or 3 / root 2
HEAD = HeadSpec(3, CLASSIFICATION)
RUN = json.dumps({"parent": "/parent", "parent_sha256": "0" * 64, "scaling": 1.5})  # an adapter.json of an earlier version


def held(kind: str, what: str) -> dict[str, np.ndarray]:
    prefix = f"{kind}/{what}/"
    return {name[len(prefix) :]: value for name, value in ORACLE.items() if name.startswith(prefix)}


def published_config(kind: str) -> BertConfig:
    values = ORACLE["bert/config"] if kind == "bert" else encoders.ORACLE[f"{kind}/SequenceClassification/config"]
    return BertConfig.from_dict(json.loads(str(values)), source="huggingface")


def write_base(folder: Path, kind: str) -> Path:
    if kind != "bert":
        return encoders.write_folder(folder, kind, "SequenceClassification")
    folder.mkdir()
    (folder / "config.json").write_text(str(ORACLE["bert/config"]))
    (folder / "vocab.txt").write_text("\n".join(encoders.TOKENS) + "\n")
    safetensors.numpy.save_file(held(kind, "weight"), folder / "model.safetensors")
    return folder


def write_adapter(folder: Path, kind: str, **changed: object) -> Path:
    """Writes the base and an adapter of it, as PEFT did, but for `changed` keys of its configuration."""
    folder.mkdir()
    base = write_base(folder / "base", kind)
    values = {**json.loads(str(ORACLE[f"{kind}/adapter_config"])), "base_model_name_or_path": str(base), **changed}
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(values))
    safetensors.numpy.save_file(held(kind, "adapter"), folder / "adapter" / "adapter_model.safetensors")
    return folder / "adapter"


def opened(folder: Path) -> str:
    return str(sources.checkpoint_of(folder, environment={"BERT_TF_HOME": str(folder.parent / "home")}))


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, tmp_path_factory):
    """Kind and converted checkpoint of an adapter."""
    folder = tmp_path_factory.mktemp("peft") / request.param
    return request.param, opened(write_adapter(folder, request.param))


def test_the_commands_of_checkpoints_read_an_adapter(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    inspected = bert_tf.inspect_checkpoint(write_adapter(tmp_path / "bert", "bert"))
    assert "output_weights" in {variable.name for variable in inspected.variables}


def config_of(prefix: str) -> BertConfig:
    return BertConfig.from_json_file(Path(prefix).with_name("bert_config.json"))


def test_merged_weights_compute_their_logits(checkpoint):
    kind, prefix = checkpoint
    reader = model_reader(prefix)
    weights = {name: reader[name] for name in reader.shapes}
    logits = evaluate(lambda: encoders.computed(config_of(prefix), HEAD, Execution()), weights)
    np.testing.assert_allclose(logits, ORACLE[f"{kind}/logits"], atol=1e-5)


def parts_of(prefix: str) -> dict[str, np.ndarray]:
    """Weights of the parent, with updates beside them."""
    parent = model_reader(adapter.read_adapter(Path(prefix).parent).parent)
    plan, own = plan_restore(parent, config_of(prefix), ()), CheckpointReader(prefix)
    return {**{name: parent[plan.stored(name)] for name in plan.loaded}, **{name: own[name] for name in own.shapes}}


@pytest.mark.parametrize("way", [{}, {"recompute": True}, {"native": True}], ids=str)
def test_a_training_graph_has_their_logits_and_gradients(checkpoint, way, request):
    kind, prefix = checkpoint
    if kind not in SCALINGS or (way and kind not in ("bert", "modernbert")):
        return  # they differ by matrix, which those of training do not; ways of encoders are compared in tests/modeling
    if "native" in way:
        request.getfixturevalue("kernels")
    config, weights, own = config_of(prefix), parts_of(prefix), CheckpointReader(prefix).shapes
    execution = Execution(adaptation=LowRank(2, SCALINGS[kind], scopes(weights), frozenset()), **way)

    def build():
        logits = encoders.computed(config, HEAD, execution)
        variables = [variable for variable in tf1.trainable_variables() if variable.op.name in own]
        gradients = tf.gradients(logits, variables, tf.constant(encoders.ORACLE["upstream"]))
        return logits, {v.op.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}

    logits, gradients = evaluate(build, weights)
    np.testing.assert_allclose(logits, ORACLE[f"{kind}/logits"], atol=1e-5)
    theirs = peft_format.by_published_names(held(kind, "gradient"), config, {"lora_alpha": 1}, Path(prefix).parent).entries
    assert gradients.keys() == own.keys() == theirs.keys()
    joined = {name for name in theirs if kind == "modernbert" and "/self/" in name and name.endswith(DOWN)}
    for name in theirs.keys() - joined:
        np.testing.assert_allclose(gradients[name], theirs[name], atol=1e-5, rtol=1e-4, err_msg=name)
    for scope in {name.rpartition("/self/")[0] for name in joined}:  # theirs reads one matrix three times
        three = sum(gradients[f"{scope}/self/{part}/{DOWN}"] for part in ("query", "key", "value"))
        np.testing.assert_allclose(three, theirs[f"{scope}/self/query/{DOWN}"], atol=1e-5, rtol=1e-4, err_msg=scope)


def test_what_is_written_computes_the_same(checkpoint, tmp_path):
    """Bytes for bytes, but ModernBERT's: three updates become one of three times the rank."""
    kind, prefix = checkpoint
    note = adapter.read_adapter(Path(prefix).parent)
    family = SentenceFamily(("no", "maybe", "yes"))
    peft_format.write(tmp_path, CheckpointReader(prefix), note, config_of(prefix), family)
    written = safetensors.numpy.load_file(tmp_path / "adapter_model.safetensors")
    assert written.keys() == held(kind, "adapter").keys()
    values = peft_format.read_config(tmp_path)
    again = peft_format.read_peft(tmp_path, values, config_of(prefix))
    assert again.scalings == pytest.approx(note.scalings)
    before = CheckpointReader(prefix)
    for scope in scopes(again.entries):
        now, then = ([entries[f"{scope}/{part}"] for part in (DOWN, UP)] for entries in (again.entries, before))
        np.testing.assert_allclose(now[0] @ now[1], then[0] @ then[1], atol=1e-6)
    if kind != "modernbert":
        for name, value in held(kind, "adapter").items():
            np.testing.assert_array_equal(written[name], value)
    assert values["base_model_name_or_path"] == note.parent
    assert values["task_type"] == "SEQ_CLS"
    assert set(values["modules_to_save"]) <= {"classifier", "pre_classifier", "pooler", "head"} or kind == "bert"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3', only LORA is read; merge it with PEFT"),
        ({"use_dora": True}, "use_dora is True, which is not read"),
        ({"bias": "all"}, "bias is 'all', which is not read"),
        *(
            ({"init_lora_weights": name}, f"init_lora_weights is '{name}', which changes the model that is adapted; merge it")
            for name in ("pissa", "pissa_niter_16", "OLoRA", "corda", "loftq", "lora_ga")
        ),
        ({"lora_alpha": None}, "lora_alpha of bert.encoder.layer.0.attention.self.query is None, expected a number"),
        ({"base_model_name_or_path": None}, "name there the model that was adapted"),
        ({"base_model_name_or_path": "/nowhere/model"}, "/nowhere/model: no such model, which .* adapts"),
    ],
)
def test_another_adapter_is_refused(changed, message, tmp_path):
    folder = write_adapter(tmp_path / "x", "bert", **changed)
    with pytest.raises(CheckpointError, match=message) as error:
        opened(folder)
    assert "\n" not in str(error.value)


def test_weights_of_torch_save_are_read(tmp_path):
    pytest.importorskip("bert_tf.extensions.torch_files")
    folder = write_adapter(tmp_path / "x", "bert")
    expected = tiny.held(opened(folder))
    (folder / "adapter_model.safetensors").unlink()
    torch_files.write(folder / "adapter_model.bin", held("bert", "adapter"))
    read = tiny.held(opened(folder))
    assert read.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(read[name], value)


def test_weights_of_another_model_are_refused(tmp_path):
    folder = write_adapter(tmp_path / "x", "bert")
    safetensors.numpy.save_file(held("electra", "adapter"), folder / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match="more belongs to no known part of Bert"):
        opened(folder)


def test_vectors_of_an_adapter_are_those_of_its_base_and_texts_are_cut_as_by_its_tokenizer(tmp_path):
    folder = write_adapter(tmp_path / "x", "bert")
    huggingface.write_modules(tmp_path / "x" / "base", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 8}')
    assert run_folder.trained(Path(opened(folder)).parent) == {"pooling": "cls", "max_seq_length": 8}


def test_conversions_of_another_format_are_made_again(tmp_path, monkeypatch):
    folder = write_adapter(tmp_path / "x", "bert")
    before = opened(folder)
    monkeypatch.setattr(opening, "_FORMAT", "another")
    assert opened(folder) != before


def without_pooler(path: Path, name: str) -> None:
    tensors = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file({key: value for key, value in tensors.items() if name not in key}, path)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "deberta-v2"])
def test_a_head_on_a_pooler_that_nobody_has_is_refused(kind, tmp_path, monkeypatch):
    folder, name = write_adapter(tmp_path / "x", kind), "pre_classifier" if kind == "distilbert" else "pooler.dense"
    base = tmp_path / "x" / "base"
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps({**config, "architectures": []}))
    for path in (folder / "adapter_model.safetensors", base / "model.safetensors"):
        without_pooler(path, name)
    opened(base)
    drawn = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: drawn(seed + 1))  # as another version of NumPy may draw
    with pytest.raises(CheckpointError, match=f"its head reads {name}, which neither it nor its base has; save it with"):
        opened(folder)


@pytest.mark.parametrize(
    ("kind", "tensor", "shape", "message"),
    [
        (
            "bert",
            "bert.encoder.layer.0.attention.self.query.lora_A.weight",
            (0, 12),
            "has no pair of matrices lora_A and lora_B",
        ),
        ("modernbert", "model.layers.0.attn.Wqkv.weight", (35, 12), r"is \[35, 12\], not 3 equal parts"),
    ],
)
def test_tensors_of_sizes_that_cannot_be_are_refused(kind, tensor, shape, message, tmp_path):
    config = published_config(kind)
    tensors = {**held(kind, "adapter"), f"base_model.model.{tensor}": np.zeros(shape, np.float32)}
    with pytest.raises(CheckpointError, match=message):
        peft_format.by_published_names(tensors, config, {"lora_alpha": 1}, tmp_path)


@pytest.mark.parametrize("name", [False, "gaussian", "eva", "orthogonal"])
def test_initialisations_that_keep_the_parent_are_read(name, tmp_path):
    assert opened(write_adapter(tmp_path / "x", "bert", init_lora_weights=name))


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ({"scaling": 2.0}, True),
        ({"scalings": {"bert/encoder/layer_0/attention/self/query": 3.0}}, True),
        ({"parent_sha256": "1" * 64}, True),
        ({"layers": (0,)}, True),
        ({"parent": "/moved", "parent_name": "hub:moved"}, False),
    ],
)
def test_the_digest_of_an_adapter_covers_its_factors_and_parent(changed, is_other, tmp_path):
    prefix, note = tmp_path / "model.ckpt", adapter.Adapter("/parent", "0" * 64, 1.5, converted=True)
    (tmp_path / "model.ckpt.index").write_text("the same updates")
    note.write(tmp_path)
    before = digest(str(prefix))
    dataclasses.replace(note, **changed).write(tmp_path)
    assert (digest(str(prefix)) != before) == is_other


@pytest.mark.parametrize("text", [RUN, "damaged"])
def test_the_digest_of_a_run_is_that_of_its_index_as_earlier_versions_recorded(text, tmp_path):
    index = tmp_path / "model.ckpt.index"
    index.write_text("updates")
    (tmp_path / "adapter.json").write_text(text)
    assert digest(str(tmp_path / "model.ckpt")) == files.digest(index)


def test_the_same_updates_with_another_alpha_are_converted_to_another_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(converted, "_write", lambda trained, path: path.write_text(trained.digest))
    cache, graphs = converted.ConvertedModels(tmp_path / "home"), []
    for alpha in (3, 32):
        folder = write_adapter(tmp_path / f"x{alpha}", "bert", lora_alpha=alpha)
        graphs.append(cache.onnx(loading.load(opened(folder), ModelOverrides()), "float32"))
    assert graphs[0] != graphs[1]


FAMILIES = {
    TAGS: {"kind": TAGS, "labels": ["O", "B-X"]},
    SPAN: {"kind": SPAN},
    CHOICE: {"kind": CHOICE},
    REGRESSION: {"kind": REGRESSION, "labels": []},
}


@pytest.mark.parametrize("head", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_other_heads_are_written_and_read(kind, head, tmp_path):
    """A query has an update; the pooler is trained if the head reads it, as that of ModernBERT for each token."""
    config, family = published_config(kind), families.of_record(FAMILIES[head])
    random, scope = np.random.default_rng(0), "bert/encoder/layer_0/attention/self/query"
    shapes = {f"{scope}/{DOWN}": (12, 2), f"{scope}/{UP}": (2, 12), **registry.make_head(family.head).variables(config)}
    if trains_pooler(registry.make_head(family.head), config):
        shapes |= {name: shape for name, shape in encoder_shapes(config).items() if name.startswith("bert/pooler/")}
    entries = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    write_checkpoint(tmp_path / "model.ckpt", entries)
    note = adapter.Adapter("/parent", "0" * 64, 1.5)
    peft_format.write(tmp_path, CheckpointReader(tmp_path / "model.ckpt"), note, config, family)
    values = peft_format.read_config(tmp_path)
    read = peft_format.read_peft(tmp_path, values, config)
    others = {f"{scope.replace('query', name)}/{part}" for name in ("key", "value") for part in (DOWN, UP)}
    assert read.entries.keys() - (others if kind == "modernbert" else set()) == entries.keys()
    for name in entries.keys() - {f"{scope}/{DOWN}"}:
        np.testing.assert_array_equal(read.entries[name], entries[name], err_msg=name)
    assert read.scalings[scope] == 1.5
    assert values["task_type"] == {TAGS: "TOKEN_CLS", SPAN: "QUESTION_ANS", REGRESSION: "SEQ_CLS"}.get(head)


@pytest.mark.parametrize(
    ("kind", "layers", "scope", "message"),
    [
        ("bert", (1, 3), "", "the model lacks layers of its parent, PEFT would compute all of them"),
        (
            "modernbert",
            (),
            "bert/encoder/layer_1/attention/self/query",
            "kernel is trained as a whole, in transformers it is a part of",
        ),
    ],
)
def test_models_that_peft_would_compute_otherwise_have_no_files_of_it(kind, layers, scope, message, tmp_path, caplog):
    config = published_config(kind)
    updated = "bert/encoder/layer_0/attention/self/query"
    shapes = {f"{updated}/{DOWN}": (12, 2), f"{updated}/{UP}": (2, 12), **({f"{scope}/kernel": (12, 12)} if scope else {})}
    write_checkpoint(tmp_path / "model.ckpt", {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_text("of an earlier version")
    note = adapter.Adapter("/parent", "0" * 64, 1.5, layers=layers)
    peft_format.write(tmp_path, CheckpointReader(tmp_path / "model.ckpt"), note, config, SentenceFamily(("no", "yes")))
    assert message in caplog.text
    assert not list(tmp_path.glob("adapter_*"))
