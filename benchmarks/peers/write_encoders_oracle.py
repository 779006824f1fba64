"""Writes encoders_oracle.npz: outputs of transformers' encoders other than BERT for made-up weights and a made-up batch.

Run by hand, in an environment with benchmarks/peers/transformers.txt:
`.peers/transformers/bin/python benchmarks/peers/write_encoders_oracle.py`.

By model: its config.json, its weights, logits [B, L], [B, T, L] or [1, B], and, of sentence classifiers, the gradients of
sum(logits * upstream) and the losses of steps of training without dropout; weights and gradients by transformers' names.
masked_words_oracle.npz has the same of heads of masked words: logits [B, T, V], gradients of the loss, and losses.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "modeling"
TARGET, MASKED_WORDS = (FOLDER / f"{name}_oracle.npz" for name in ("encoders", "masked_words"))
LENGTHS, TOKENS, VOCABULARY = (8, 5, 1), 8, 23
CONFIGS = {
    "electra": transformers.ElectraConfig(
        vocab_size=VOCABULARY,
        embedding_size=8,
        hidden_size=12,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=10,
    ),
    "distilbert": transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=12, n_layers=1, n_heads=3, hidden_dim=20, max_position_embeddings=10
    ),
    "roberta": transformers.RobertaConfig(
        vocab_size=VOCABULARY,
        hidden_size=12,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=12,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    ),
    # Two groups of two layers.
    "albert": transformers.AlbertConfig(
        vocab_size=VOCABULARY,
        embedding_size=8,
        hidden_size=12,
        num_hidden_layers=4,
        num_hidden_groups=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=10,
    ),
    "mpnet": transformers.MPNetConfig(
        vocab_size=VOCABULARY,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=12,
    ),
    # Distances of more than 2 tokens share buckets, those of more than 5 one of them.
    "deberta-v2": transformers.DebertaV2Config(
        vocab_size=VOCABULARY,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=10,
        relative_attention=True,
        position_buckets=4,
        max_relative_positions=7,
        position_biased_input=False,
        pos_att_type="p2c|c2p",
        share_att_key=True,
        norm_rel_ebd="layer_norm",
    ),
    # One layer of three attends within a window of 4.
    "modernbert": transformers.ModernBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=12,
        num_hidden_layers=4,
        num_attention_heads=3,
        intermediate_size=10,
        max_position_embeddings=10,
        local_attention=4,
        pad_token_id=0,
        classifier_pooling="mean",
        attn_implementation="eager",
    ),
}
CLASSES = {
    "electra": "Electra",
    "distilbert": "DistilBert",
    "roberta": "Roberta",
    "albert": "Albert",
    "mpnet": "MPNet",
    "deberta-v2": "DebertaV2",
    "modernbert": "ModernBert",
}
WORDS = ("distilbert", "roberta", "mpnet", "deberta-v2", "modernbert")
NORMS = ("LayerNorm.weight", "layer_norm.weight", "norm.weight")
HEADS = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
LABELS = ("no", "maybe", "yes")
TRUE_LABELS, STEPS, WARMUP, PEAK = [2, 0, 1], 40, 4, 1e-3


def batch() -> dict[str, np.ndarray]:
    """Returns sequences of random ids of two segments; 0 and 1 are padding, which has no gradient in transformers."""
    random, shape = np.random.default_rng(0), (len(LENGTHS), TOKENS)
    return {
        "input_ids": random.integers(2, VOCABULARY, shape),
        "input_mask": (np.arange(TOKENS) < np.array(LENGTHS)[:, None]).astype(np.int64),
        "segment_ids": random.integers(0, 2, shape),
    }


def logits(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> torch.Tensor:
    """Returns the logits of a batch; of multiple choice, the batch is one question."""
    ids, mask, segments = (torch.tensor(array) for array in inputs.values())
    given = {"input_ids": ids, "attention_mask": mask}
    if model.config.model_type in ("electra", "albert"):
        given["token_type_ids"] = segments
    if type(model).__name__.endswith("MultipleChoice"):
        given = {name: value[None] for name, value in given.items()}
    out = model(**given)
    return torch.stack([out.start_logits, out.end_logits], dim=-1) if "start_logits" in out else out.logits


def losses(model: torch.nn.Module, loss_of: Callable[[], torch.Tensor]) -> np.ndarray:
    """Trains by AdamW and the published schedule; dropout is off."""
    whole = {False: [], True: []}
    for name, parameter in model.named_parameters():
        whole["bias" in name.rpartition(".")[2] or "norm" in name.lower()].append(parameter)
    groups = [{"params": some, "weight_decay": 0.0 if spared else 0.01} for spared, some in whole.items()]
    optimizer, found = torch.optim.AdamW(groups, eps=1e-6), []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = PEAK * (step / WARMUP if step < WARMUP else 1 - step / STEPS)
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return np.array(found, np.float32)


def filled(model: torch.nn.Module, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Makes up weights, and returns them."""
    for name, parameter in model.named_parameters():
        center = 1.0 if name.endswith(NORMS) else 0.0
        parameter.data.copy_(torch.tensor(random.normal(center, 0.3, parameter.shape).round(1), dtype=torch.float32))
    return {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}


def write_masked_words() -> None:
    """Some tokens are to be told from the others; the batch is not masked."""
    random, inputs, arrays = np.random.default_rng(2), batch(), {}
    places = (np.random.default_rng(3).random((len(LENGTHS), TOKENS)) < 0.5) & (inputs["input_mask"] == 1)
    places[:, 0] = True
    labels = torch.tensor(np.where(places, random.integers(2, VOCABULARY, places.shape), -100))
    for kind in WORDS:
        config = CONFIGS[kind]
        config.legacy = False  # of two heads of DeBERTa, that of the published weights
        model = getattr(transformers, f"{CLASSES[kind]}ForMaskedLM")(config).eval()
        arrays |= {f"{kind}/weight/{name}": values for name, values in filled(model, random).items()}
        arrays[f"{kind}/config"] = np.array(json.dumps({**config.to_dict(), "architectures": [type(model).__name__]}))

        def loss_of(model: torch.nn.Module = model) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(logits(model, inputs).flatten(0, 1), labels.flatten())

        arrays[f"{kind}/logits"] = logits(model, inputs).detach().numpy()
        loss_of().backward()
        arrays |= {
            f"{kind}/gradient/{name}": p.grad.numpy().copy() for name, p in model.named_parameters() if p.grad is not None
        }
        arrays[f"{kind}/losses"] = losses(model, loss_of)
    np.savez_compressed(MASKED_WORDS, **inputs, labels=labels.numpy(), **arrays)


def main() -> None:
    """Writes the first file."""
    random, inputs, arrays = np.random.default_rng(1), batch(), {}
    upstream = random.normal(size=(len(LENGTHS), len(LABELS))).astype(np.float32)
    for kind, config in CONFIGS.items():
        for head in HEADS:
            config.id2label = dict(enumerate(LABELS if "Classification" in head else LABELS[:2]))
            model = getattr(transformers, f"{CLASSES[kind]}For{head}")(config).eval()
            arrays |= {f"{kind}/{head}/weight/{name}": values for name, values in filled(model, random).items()}
            found = logits(model, inputs)
            arrays[f"{kind}/{head}/logits"] = found.detach().numpy()
            values = {**config.to_dict(), "architectures": [type(model).__name__]}
            arrays[f"{kind}/{head}/config"] = np.array(json.dumps(values))
            if head == "SequenceClassification":
                (found * torch.tensor(upstream)).sum().backward()
                arrays |= {f"{kind}/gradient/{name}": p.grad.numpy() for name, p in model.named_parameters()}

                def loss_of(model: torch.nn.Module = model) -> torch.Tensor:
                    return torch.nn.functional.cross_entropy(logits(model, inputs), torch.tensor(TRUE_LABELS))

                arrays[f"{kind}/losses"] = losses(model, loss_of)
    np.savez_compressed(TARGET, **inputs, upstream=upstream, **arrays)


if __name__ == "__main__":
    main()
    write_masked_words()
