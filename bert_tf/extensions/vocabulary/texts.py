"""Texts whose words are counted, as `pretrain` reads them."""

from bert_tf import extension

extension.needed("pretrain", "vocabulary")

from bert_tf.extensions.pretrain.corpus import documents as documents  # noqa: E402
from bert_tf.extensions.pretrain.corpus import processes as processes  # noqa: E402
from bert_tf.extensions.pretrain.corpus.documents import Corpus as Corpus  # noqa: E402
from bert_tf.extensions.pretrain.corpus.documents import Piece as Piece  # noqa: E402
from bert_tf.extensions.pretrain.corpus.settings import CorpusSettings as CorpusSettings  # noqa: E402
