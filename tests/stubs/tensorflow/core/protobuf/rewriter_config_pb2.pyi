class RewriterConfig:
    ON: int
    OFF: int
    ONE: int
    NO_MEM_OPT: int
    def __init__(self, **fields: object) -> None: ...
