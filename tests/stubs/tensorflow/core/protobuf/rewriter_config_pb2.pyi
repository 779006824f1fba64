class RewriterConfig:
    ON: int
    OFF: int
    ONE: int
    def __init__(self, **fields: object) -> None: ...
