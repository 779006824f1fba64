from collections.abc import Mapping, Sequence
from typing import Any

class BeamIOError(OSError):
    exception_details: Mapping[Any, Exception] | None
    def __init__(self, msg: str, exception_details: Mapping[Any, Exception] | None = None) -> None: ...

class CompressionTypes:
    UNCOMPRESSED: str

class FileMetadata:
    path: str
    size_in_bytes: int
    last_updated_in_seconds: float

class MatchResult:
    metadata_list: Sequence[FileMetadata]
