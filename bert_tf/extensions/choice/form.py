"""Request and response of the service for multiple choice."""

from bert_tf.extensions.serve.forms import GIVEN_ID, TEXT, Field, Form, either, list_of
from bert_tf.tasks.predictions import object_schema

FORM = Form(
    "Chooses one of several options.",
    either(
        object_schema({"options": list_of(TEXT, 2)}, {"context": TEXT, "question": TEXT, "id": GIVEN_ID}),
        {"type": "object", "required": ["ending0", "ending1"], "description": "SWAG's columns: sent1, sent2, ending0, ..."},
        {"type": "array", "minItems": 3, "maxItems": 3, "description": "only within rows: context, question, options"},
    ),
    {"context": "It rains.", "question": "What do they do?", "options": ["They stay in.", "They swim."]},
    (
        Field("context", "Context", may_be_empty=True),
        Field("question", "Question (may be empty)", lines=1, may_be_empty=True),
        Field("options", "Options, one per line", lines=4, is_list=True),
    ),
    "options",
)
