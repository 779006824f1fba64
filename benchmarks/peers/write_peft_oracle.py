"""Writes peft_oracle.npz: adapters that PEFT has saved for made-up encoders, and what they compute.

Run by hand, in an environment with torch, transformers and peft: `python benchmarks/peers/write_peft_oracle.py`.

Configurations, weights and batch are those of tests/modeling/encoders_oracle.npz, and of a BERT, which is written here. By
model: both files of the adapter, logits [B, L], and the gradients of sum(logits * upstream) by PEFT's names.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import peft
import safetensors.numpy
import torch
import transformers

TESTS = Path(__file__).resolve().parents[2] / "tests"
TARGET = TESTS / "extensions" / "lora" / "peft_oracle.npz"
ENCODERS = TESTS / "modeling" / "encoders_oracle.npz"
BERT = transformers.BertConfig(
    vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, max_position_embeddings=10
)
NORMS = ("LayerNorm.weight", "layer_norm.weight", "norm.weight")
# Matrices with an update, modules that are kept whole, and what differs from plain updates.
ADAPTERS = {
    "bert": (["query", "value", "attention.output.dense"], ["classifier", "LayerNorm"], {}),
    "roberta": (["query", "key", "value"], ["classifier"], {"use_rslora": True}),
    "electra": (["query", "value"], ["classifier"], {}),
    "distilbert": (
        ["q_lin", "v_lin", "lin1"],
        ["pre_classifier", "classifier"],
        {"rank_pattern": {"lin1": 3}, "alpha_pattern": {"lin1": 1}},
    ),
    "modernbert": (["Wqkv", "Wi", "mlp.Wo"], ["head", "classifier"], {}),
    "deberta-v2": (["query_proj", "key_proj"], ["pooler", "classifier"], {"layers_to_transform": [1]}),
}


def model_of(kind: str, oracle: dict[str, np.ndarray], random: np.random.Generator) -> torch.nn.Module:
    if kind == "bert":
        BERT.id2label = dict(enumerate(("no", "maybe", "yes")))
        model = transformers.BertForSequenceClassification(BERT)
        for name, parameter in model.named_parameters():
            center = 1.0 if name.endswith(NORMS) else 0.0
            parameter.data.copy_(torch.tensor(random.normal(center, 0.3, parameter.shape).round(1), dtype=torch.float32))
        return model.eval()
    values = json.loads(str(oracle[f"{kind}/SequenceClassification/config"]))
    model_type = values.pop("model_type")
    attention = {"attn_implementation": "eager"} if kind == "modernbert" else {}
    config = transformers.AutoConfig.for_model(model_type, **values, **attention)
    model = transformers.AutoModelForSequenceClassification.from_config(config, **attention)
    prefix = f"{kind}/SequenceClassification/weight/"
    weights = {name[len(prefix) :]: torch.tensor(value) for name, value in oracle.items() if name.startswith(prefix)}
    model.load_state_dict(weights, strict=False)
    if {name for name, _ in model.named_parameters()} != weights.keys():
        raise ValueError(f"{kind}: other weights than its model has")
    return model.eval()


def main() -> None:
    """Writes the file."""
    oracle, random, arrays = dict(np.load(ENCODERS)), np.random.default_rng(1), {}
    ids, mask, segments = (torch.tensor(oracle[name]) for name in ("input_ids", "input_mask", "segment_ids"))
    upstream = torch.tensor(oracle["upstream"])
    for kind, (targets, kept, more) in ADAPTERS.items():
        model = model_of(kind, oracle, random)
        if kind == "bert":
            arrays["bert/config"] = np.array(json.dumps({**BERT.to_dict(), "architectures": [type(model).__name__]}))
            arrays |= {f"bert/weight/{name}": p.detach().numpy().copy() for name, p in model.named_parameters()}
        chosen = peft.LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=3, target_modules=targets, modules_to_save=kept, **more)
        adapted = peft.get_peft_model(model, chosen).eval()
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                center = 1.0 if name.endswith(NORMS) or name.endswith("LayerNorm.modules_to_save.default.weight") else 0.0
                parameter.data.copy_(torch.tensor(random.normal(center, 0.3, parameter.shape).round(1), dtype=torch.float32))
        given = {"input_ids": ids, "attention_mask": mask}
        if kind in ("electra", "bert"):
            given["token_type_ids"] = segments
        logits = adapted(**given).logits
        (logits * upstream).sum().backward()
        arrays[f"{kind}/logits"] = logits.detach().numpy()
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                stored = name.replace(".default", "").replace(".modules_to_save", "")
                arrays[f"{kind}/gradient/{stored}"] = parameter.grad.numpy()
        with tempfile.TemporaryDirectory() as folder:
            adapted.save_pretrained(folder)
            arrays[f"{kind}/adapter_config"] = np.array(Path(folder, "adapter_config.json").read_text())
            tensors = safetensors.numpy.load_file(Path(folder, "adapter_model.safetensors"))
        arrays |= {f"{kind}/adapter/{name}": value for name, value in tensors.items()}
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    main()
