"""Request and response of the service for questions about a text."""

from bert_tf.extensions.serve.forms import GIVEN_ID, TEXT, Field, Form, either, list_of
from bert_tf.tasks.predictions import object_schema

FORM = Form(
    "Finds the answer to a question in a text.",
    either(
        object_schema({"question": TEXT, "context": TEXT}, {"id": GIVEN_ID, "title": TEXT}),
        {**list_of(TEXT, 2, 2), "description": "only within rows: question and context"},
    ),
    {"question": "Who built the mill?", "context": "Ada built the mill in 1871."},
    (Field("question", "Question", lines=1), Field("context", "Text that holds the answer", lines=8)),
    "answer",
)
