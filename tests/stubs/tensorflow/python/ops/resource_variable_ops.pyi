from typing import Any

from tensorflow import Variable

class BaseResourceVariable(Variable):
    def __init__(self, **options: Any) -> None: ...
