from typing import Any

class XSpace:
    planes: list[Any]
    @staticmethod
    def FromString(s: bytes) -> XSpace: ...
