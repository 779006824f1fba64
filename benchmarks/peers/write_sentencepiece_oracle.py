"""Writes sentencepiece_oracle.json: small SentencePiece models, and the ids that the tokenizers of transformers make of texts.

Run by hand, in an environment with benchmarks/peers/transformers.txt, sentencepiece and protobuf:
`.peers/transformers/bin/python benchmarks/peers/write_sentencepiece_oracle.py`.

By folder: its files (the model in base64), and of each text its ids with special tokens, and those of a pair with itself.
"""

import base64
import io
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import sentencepiece
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast, convert_slow_tokenizer
from write_library_oracle import TEXTS, WRITTEN

TARGET = Path(__file__).resolve().parents[2] / "tests" / "extensions" / "sentencepiece" / "sentencepiece_oracle.json"
RULES = "FB01\t66 69\n2019\t27\n"  # a small table of the normalizer: fi, a quotation mark
OF_BERT = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
OF_ALBERT = {**OF_BERT, "pad_token": "<pad>", "unk_token": "<unk>"}
OF_ROBERTA = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"}
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
TEXTS = [*TEXTS, "a [MASK] b", "[CLS]", "``x''", "in 1,000, 2,", "\ufb01n \u2019s", "x \u2581 y", "a<usr>b"]

# By folder: model, training options, converter and what it asks, special tokens, whether a mask takes the blank before it.
CASES = {
    "deberta": (
        "spm.model",
        {**DEBERTA, "unk_piece": "[UNK]", "user_defined_symbols": ["<usr>"]},
        "DebertaV2",
        {},
        OF_BERT,
        {},
    ),
    "deberta lower": (
        "spm.model",
        {**DEBERTA, "unk_piece": "[UNK]"},
        "DebertaV2",
        {"do_lower_case": True, "split_by_punct": True},
        OF_BERT,
        {},
    ),
    "albert": ("spiece.model", ALBERT, "Albert", {}, OF_ALBERT, {"lstrip": True}),
    "albert cased": (
        "spiece.model",
        ALBERT,
        "Albert",
        {"do_lower_case": False, "keep_accents": True},
        OF_ALBERT,
        {"lstrip": True},
    ),
    "xlm-roberta": ("sentencepiece.bpe.model", {}, "XLMRoberta", {}, OF_ROBERTA, {"lstrip": True}),
    "camembert": ("sentencepiece.bpe.model", {}, "Camembert", {}, OF_ROBERTA, {"lstrip": True}),
}
DEFAULTS = {
    "DebertaV2": {"do_lower_case": False, "split_by_punct": False},
    "Albert": {"do_lower_case": True, "keep_accents": False},
}
FIRST_IDS = {
    "DebertaV2": {"[CLS]": 1, "[SEP]": 2},
    "Albert": {"[CLS]": 2, "[SEP]": 3},
    "XLMRoberta": {"<s>": 0, "</s>": 2},
    "Camembert": {"<s>": 5, "</s>": 6},
}


def main() -> None:
    """Writes the file."""
    found = {"texts": TEXTS, "folders": {}}
    with tempfile.TemporaryDirectory() as folder:
        rules, path = Path(folder, "rules.tsv"), Path(folder, "model")
        rules.write_text(RULES)
        for name, (file, options, converter, switches, tokens, mask) in CASES.items():
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(WRITTEN.split("\n") * 3),
                model_writer=model,
                vocab_size=80,
                hard_vocab_limit=False,
                normalization_rule_tsv=str(rules),
                minloglevel=2,
                **options,
            )
            path.write_bytes(model.getvalue())
            asked = {**DEFAULTS.get(converter, {}), **switches}
            slow = SimpleNamespace(vocab_file=str(path), convert_tokens_to_ids=FIRST_IDS[converter].__getitem__, **asked)
            made = getattr(convert_slow_tokenizer, f"{converter}Converter")(slow).converted()
            special = [AddedToken(token, special=True, normalized=False) for token in list(tokens.values())[:-1]]
            made.add_special_tokens([*special, AddedToken(tokens["mask_token"], special=True, normalized=False, **mask)])
            reader = PreTrainedTokenizerFast(tokenizer_object=made, **tokens)
            config = {"config.json": json.dumps({"model_type": "camembert"})} if name == "camembert" else {}
            found["folders"][name] = {
                "model": [file, base64.b64encode(model.getvalue()).decode()],
                "files": {**({"tokenizer_config.json": json.dumps(switches)} if switches else {}), **config},
                "ids": [reader(text)["input_ids"] for text in TEXTS],
                "pairs": [reader(text, text)["input_ids"] for text in TEXTS],
            }
    TARGET.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
