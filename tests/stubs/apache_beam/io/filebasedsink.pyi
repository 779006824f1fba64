from typing import Any

class FileBasedSink:
    def __init__(
        self,
        file_path_prefix: str,
        coder: object,
        file_name_suffix: str = "",
        *,
        compression_type: str = ...,
        skip_if_empty: bool = False,
    ) -> None: ...
    def open(self, temp_path: str) -> Any: ...
    def write_encoded_record(self, file_handle: Any, encoded_value: bytes) -> None: ...
    def close(self, file_handle: Any) -> None: ...
