"""Computes exported folders by transformers, in an environment of its own: FOLDER/*/config.json and batch.npz to logits.npz.

A folder of vectors is computed as its modules for sentence-transformers say.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers


def outputs(folder, batch):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    unmatched = [*info["missing_keys"], *info["unexpected_keys"], *info["mismatched_keys"]]
    if unmatched:
        raise SystemExit(f"{folder}: {name}: {unmatched}")
    model.eval()
    ids, mask, segments = (torch.tensor(batch[name], dtype=torch.long) for name in ("input_ids", "input_mask", "segment_ids"))
    if name == "BertForMultipleChoice":
        ids, mask, segments = ids[None], mask[None], segments[None]
    with torch.no_grad():
        output = model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
    if name == "BertForQuestionAnswering":
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    if name == "BertForMultipleChoice":
        return output.logits[0]
    if name == "BertForPreTraining":
        return of_words_and_pairs(output, batch)
    if name == "BertModel":
        return vectors(folder, output.last_hidden_state, mask)
    return output.logits


def of_words_and_pairs(outputs, batch):
    """Log-probabilities of the words in masked places, [B, S], and beside them the logits of the pair."""
    positions, ids = (torch.tensor(batch[name], dtype=torch.long) for name in ("masked_lm_positions", "masked_lm_ids"))
    of_words = torch.log_softmax(outputs.prediction_logits, dim=-1)[torch.arange(len(ids))[:, None], positions, ids]
    return torch.cat([of_words, outputs.seq_relationship_logits], dim=1)


def vectors(folder, tokens, mask):
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_mean_tokens"], pooling
    real = mask[:, :, None].float()
    means = (tokens * real).sum(dim=1) / real.sum(dim=1)
    kinds = [module["type"].rpartition(".")[2] for module in json.loads((folder / "modules.json").read_text())]
    return torch.nn.functional.normalize(means, dim=-1) if "Normalize" in kinds else means


def main():
    folder = pathlib.Path(sys.argv[1])
    batch = np.load(folder / "batch.npz")
    folders = sorted(path.parent for path in folder.glob("*/config.json"))
    np.savez(folder / "logits.npz", **{path.name: outputs(path, batch).numpy() for path in folders})
    texts = json.loads((folder / "texts.json").read_text())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[0])
    (folder / "ids.json").write_text(json.dumps(tokenizer(texts)["input_ids"]))


main()
