"""What a client is told in the place of an answer."""

from __future__ import annotations

from collections.abc import Mapping

BAD_REQUEST, FORBIDDEN, NOT_FOUND, NOT_ALLOWED, TIMEOUT, CONFLICT = 400, 403, 404, 405, 408, 409
TOO_LARGE, ENCODED, UNUSABLE = 413, 415, 422
TOO_MANY, INTERNAL, UNAVAILABLE, GONE = 429, 500, 503, 499

CLOSE = {"Connection": "close"}

_LONGEST = 1000  # characters of a message, which may quote what was sent


class Refusal(Exception):  # noqa: N818  (an answer, no error of the service)
    """A request that is not answered.

    Attributes:
      status: of HTTP.
      message: one line: what is wrong, and what to do.
      headers: further ones of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Keeps what the client is told.

        Args:
          status: of HTTP.
          message: what is wrong, and what to do; line ends become blanks.
          headers: further ones of the answer.
        """
        self.status, self.message, self.headers = status, " ".join(message[:_LONGEST].split()), dict(headers or {})
        super().__init__(self.message)


def later(status: int, message: str, seconds: float) -> Refusal:
    """Returns the refusal of a request that may be sent again.

    Args:
      status: of HTTP.
      message: what is wrong.
      seconds: after which to try again, at least.
    """
    return Refusal(status, message, {"Retry-After": str(max(1, round(seconds)))})
