"""Rows of data, as `data check` reads and counts them."""

from bert_tf import extension

extension.needed("data", "audit_data")

from bert_tf.extensions.data.check import splits_of as splits_of  # noqa: E402
from bert_tf.extensions.data.survey import comparable_label as comparable_label  # noqa: E402
from bert_tf.extensions.data.survey import survey as survey  # noqa: E402
