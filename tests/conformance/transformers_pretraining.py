"""Losses and gradients of BertForPreTraining of transformers, in an environment of its own: FOLDER/batch.npz to found.npz.

The model is that of FOLDER; it is written back to FOLDER/again.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers


def main():
    folder = pathlib.Path(sys.argv[1])
    batch = {name: torch.tensor(value, dtype=torch.long) for name, value in np.load(folder / "batch.npz").items()}
    model, info = transformers.BertForPreTraining.from_pretrained(folder, output_loading_info=True)
    unmatched = [*info["missing_keys"], *info["unexpected_keys"], *info["mismatched_keys"]]
    if unmatched:
        raise SystemExit(f"{folder}: {unmatched}")
    model.eval()
    labels = torch.full_like(batch["input_ids"], -100)
    for row, count in enumerate(batch["slots"]):
        labels[row, batch["masked_lm_positions"][row, :count]] = batch["masked_lm_ids"][row, :count]
    outputs = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"],
        labels=labels,
        next_sentence_label=batch["next_sentence_labels"],
    )
    outputs.loss.backward()
    words = torch.nn.functional.cross_entropy(outputs.prediction_logits.flatten(0, 1), labels.flatten())
    pairs = torch.nn.functional.cross_entropy(outputs.seq_relationship_logits, batch["next_sentence_labels"])
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    losses = {"loss": outputs.loss, "words": words, "pairs": pairs}
    np.savez(folder / "found.npz", **{name: loss.detach().numpy() for name, loss in losses.items()}, **gradients)
    model.save_pretrained(folder / "again")


main()
