"""Request and response of the service for tags."""

from bert_tf.extensions.serve.forms import GIVEN_ID, TEXT, Field, Form, either, list_of
from bert_tf.tasks.predictions import object_schema

FORM = Form(
    "Tags each word of a sentence and finds its entities.",
    either(
        object_schema({"text": TEXT}, {"id": GIVEN_ID}),
        object_schema({"tokens": list_of(TEXT)}, {"id": GIVEN_ID}),
        {**TEXT, "description": "only within rows: a text, which is cut into words"},
        {**list_of(TEXT), "description": "only within rows: the words"},
    ),
    {"text": "Ada built the mill in 1871."},
    (Field("text", "Sentence"),),
    "words",
)
