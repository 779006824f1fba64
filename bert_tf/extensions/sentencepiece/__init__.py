"""SentencePiece models as tokenizers: spm.model, spiece.model, sentencepiece.bpe.model (docs/checkpoints.md)."""

from bert_tf.extension import Extension

EXTENSION = Extension(tokenizers={".model": f"{__name__}.unigram:content"})
