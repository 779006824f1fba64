"""Writes library_oracle.json: two files tokenizer.json, and the ids that transformers makes of some texts with them.

Run by hand, in an environment with benchmarks/peers/transformers.txt:
`.peers/transformers/bin/python benchmarks/peers/write_library_oracle.py`.

By kind of tokenizer: the file, and of each text its ids, cut to 16 tokens, those of a pair with the text before it, cut to 20,
the ids of its words with their numbers, and the character ranges of its tokens.
"""

import json
from pathlib import Path

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TARGET = Path(__file__).resolve().parents[2] / "tests" / "tokenization" / "library_oracle.json"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
NAMES = ("bos_token", "pad_token", "eos_token", "unk_token")
WRITTEN = """The mill at the river was built in the old days, and the miller's house stood beside it.
It rained all night; in the morning the street was wet and the river stood high at the mill.
Who built the house? The miller built it when he was young, they say, and he'll not leave it.
They've seen three mills in 1871, 12 houses and no street. Isn't the old river the same river?"""
ODD = (
    *(
        "e\u0301 caf\u00e9",
        "\u00dcber die Stra\u00dfe",
        "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2",
        "\u65e5\u672c\u8a9e\u3002",
    ),
    *("\u0639\u0631\u0628\u064a", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7 flags", "\ufb01ne"),
    *("\uff11\uff12", "a\u00a0b\u3000c", "\ufeffbom", "a\u200bb", "\ufffd", "don't", "they'll", "river?!", "mill-house"),
    *("<s>", "a <mask> b", "x</s>y", "<unk>", "1871 12", "  two  blanks  ", "tail ", "\tthe\tmill", "the\rmill", "a\x00b"),
    *("\x1f", "\U000e0041 tag", "mill" * 30, "the river " * 15, "\u00df" * 40),
)
TEXTS = ["", " ", "\n", *WRITTEN.split("\n"), *ODD]


def byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        WRITTEN.split("\n"),
        trainers.BpeTrainer(vocab_size=340, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def unigram() -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=SPECIAL, unk_token=SPECIAL[3], show_progress=False)
    made.train_from_iterator(WRITTEN.split("\n"), trainer)
    around = [("<s>", 0), ("</s>", 2)]
    pair = "<s> $A </s> </s> $B </s>"
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=around)
    return made


def main() -> None:
    """Writes the file."""
    found = {"texts": TEXTS}
    for kind, made in (("byte level", byte_level()), ("unigram", unigram())):
        made.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
        names = dict(zip(NAMES, SPECIAL))
        reader = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)
        of_words = Tokenizer.from_str(made.to_str())
        if kind == "byte level":
            of_words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        reader_of_words = transformers.PreTrainedTokenizerFast(tokenizer_object=of_words, **names)
        words = [reader_of_words(text.split(), is_split_into_words=True, add_special_tokens=False) for text in TEXTS]
        ranges = [reader(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"] for text in TEXTS]
        found[kind] = {
            "file": made.to_str(),
            "ids": [reader(text, truncation=True, max_length=16)["input_ids"] for text in TEXTS],
            "pairs": [reader(*two, truncation=True, max_length=20)["input_ids"] for two in zip(TEXTS[-1:] + TEXTS, TEXTS)],
            "words": [[one["input_ids"], one.word_ids()] for one in words],
            "ranges": ranges,
        }
    TARGET.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
