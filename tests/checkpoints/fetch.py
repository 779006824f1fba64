"""Fetches the model of a name, and prints where it lies; in a process that has not imported the package of the hub."""

import sys

from bert_tf.checkpoints import hub, prefixes
from bert_tf.errors import BertError

try:
    fetched = hub.fetch(prefixes.as_hub_name(sys.argv[1]))
    sys.stdout.write(f"{fetched.folder} {fetched.revision}\n")
except BertError as error:
    sys.stdout.write(f"error: {error}\n")
