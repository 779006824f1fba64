"""Choice: questions with several options, one of them right (docs/choice.md)."""

from bert_tf.extension import Extension, NewKind, NewTask, Usage
from bert_tf.head_spec import CHOICE

SWAG = "SWAG"

_TASK = f"{__name__}.family:task"
_TAKES = ("train_file", "dev_file", "test_file", "skip_bad_rows", "id_column")

USAGE = Usage(
    {"context": "It rained all night.", "question": "In the morning the street", "options": ["was wet.", "sang."]},
    "model.predict([{row}])[0].option",
    transformers="""\
import torch
from transformers import AutoModelForMultipleChoice, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForMultipleChoice.from_pretrained(".")
context, question, options = {context}, {question}, {options}
endings = [f"{{question}} {{option}}" for option in options]
inputs = tokenizer([context] * len(options), endings, padding=True, truncation=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**{{name: rows[None] for name, rows in inputs.items()}}).logits
options[int(logits.argmax())]""",
)

EXTENSION = Extension(
    tasks={SWAG: NewTask(_TASK, takes=_TAKES)},
    kinds={
        CHOICE: NewKind(
            family=f"{__name__}.family:ChoiceFamily",
            head=f"{__name__}.head:ChoiceHead",
            nodes=f"{__name__}.nodes:of_options",
            client=f"{__name__}.client:chosen",
            prediction=f"{__name__}.predictions:Prediction",
            form=f"{__name__}.form:FORM",
            row=f"{__name__}.reader:row_of",
            usage=f"{__name__}:USAGE",
            problem=NewTask(_TASK, takes=(*_TAKES, "problem", "label_column", "file_format")),
        )
    },
)
