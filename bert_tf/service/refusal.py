"""HTTP errors that clients receive instead of an answer."""

from __future__ import annotations

from collections.abc import Mapping

BAD_REQUEST, FORBIDDEN, NOT_FOUND, NOT_ALLOWED, TIMEOUT, CONFLICT = 400, 403, 404, 405, 408, 409
TOO_LARGE, ENCODED, UNUSABLE = 413, 415, 422
TOO_MANY, INTERNAL, UNAVAILABLE, GONE = 429, 500, 503, 499

CLOSE = {"Connection": "close"}

_LONGEST = 1000  # characters of a message, which may quote what was sent


class Refusal(Exception):  # noqa: N818  (an answer, no error of the service)
    """A request that is rejected with an HTTP status, a one-line message and extra headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Line breaks in the message become spaces."""
        self.status, self.message, self.headers = status, " ".join(message[:_LONGEST].split()), dict(headers or {})
        super().__init__(self.message)


def later(status: int, message: str, seconds: float) -> Refusal:
    return Refusal(status, message, {"Retry-After": str(max(1, round(seconds)))})
