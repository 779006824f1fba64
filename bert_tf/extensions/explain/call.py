"""POST /explain: the words of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from bert_tf.errors import FlagError
from bert_tf.extensions.explain.explanation import METHODS, OCCLUSION, Explanation, points
from bert_tf.extensions.serve.call import Call, Failed, Option, Part, as_json
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.tasks.predictions import hints_of, json_schema

if TYPE_CHECKING:
    from bert_tf.extensions.serve.forms import Form, Schema
    from bert_tf.library.model import Model

_MOST_STEPS = 128  # other requests wait meanwhile
_LABEL = {"type": ["string", "integer"], "description": "label, tag or option number; default: the predicted one"}
_WORD = {"type": "integer", "minimum": 0, "description": "number of the word, of models that tag words"}


class Explain(Call):
    """Offered by models with predictions."""

    name, says, answer = "explain", "Scores the words of one row.", "Explanation"
    needs_checkpoint = True
    options: ClassVar[Mapping[str, Option]] = {
        "method": Option((str,), {"enum": list(METHODS), "default": METHODS[0]}),
        "label": Option((str, int), _LABEL),
        "word": Option((int,), _WORD),
    }

    def is_offered(self, kind: str, config: ServeConfig) -> bool:
        from bert_tf.extensions.explain.targets import EXPLAINED

        del config
        return kind in EXPLAINED

    def computed(self, tokens: int, options: Mapping[str, Any]) -> int:
        """Each token is computed at all points of the integrals, or without each word."""
        return tokens * (tokens if options.get("method") == OCCLUSION else points(_MOST_STEPS))

    def schema(self, form: Form) -> Schema:
        del form
        return json_schema(hints_of(Explanation, label=Annotated[str, {"type": ["string", "number"]}]))

    def answers(self, model: Model, parts: Sequence[Part], config: ServeConfig) -> list[list[bytes] | Failed]:
        del config
        return [_explanations(model, part) for part in parts]


def _explanations(model: Model, part: Part) -> list[bytes] | Failed:
    explainer = model.session("explain", "/explain")
    try:
        explanations = explainer.explain(part.examples, **part.options, most_steps=_MOST_STEPS)
    except FlagError as error:  # an unknown method, label or word
        return Failed(str(error).removeprefix("--"))
    return [as_json(explanation) for explanation in explanations]
