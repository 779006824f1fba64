"""HTTP errors that clients receive instead of an answer, and the check of a request's headers.

Rejected are requests from web pages of other sites, and requests that a proxy may parse differently.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from bert_tf.errors import FlagError
from bert_tf.extensions.serve.settings import Address

BAD_REQUEST, FORBIDDEN, NOT_FOUND, NOT_ALLOWED, TIMEOUT, CONFLICT = 400, 403, 404, 405, 408, 409
TOO_LARGE, ENCODED, UNUSABLE = 413, 415, 422
TOO_MANY, INTERNAL, UNAVAILABLE, GONE = 429, 500, 503, 499

CLOSE = {"Connection": "close"}

_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{0,5})?", re.IGNORECASE)  # of a Host
_LONGEST = 1000  # maximum characters of a message, which may quote the request


class Refusal(Exception):  # noqa: N818  (an answer, no error of the service)
    """A request that is rejected with an HTTP status, a one-line message and extra headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Line breaks in the message become spaces."""
        self.status, self.message, self.headers = status, " ".join(message[:_LONGEST].split()), dict(headers or {})
        super().__init__(self.message)


def later(status: int, message: str, seconds: float) -> Refusal:
    return Refusal(status, message, {"Retry-After": str(max(1, round(seconds)))})


class Guard:
    """Checks the headers of a request.

    Any web page can make a browser send requests to 127.0.0.1, and a page whose name resolves there (DNS rebinding) can
    read the answers: browsers name the page in Origin, and the name in Host.
    """

    def __init__(self, address: Address) -> None:
        """Raises FlagError if an allowed host is not a host name."""
        given = [] if address.allowed_hosts is None else [name.strip().lower() for name in address.allowed_hosts.split(",")]
        wrong = [name for name in given if _name(name) != name.rstrip(".")]
        if wrong:
            raise FlagError(f"--allowed_hosts: {wrong[0]!r:.80} is not a host name; give comma-separated names without ports")
        self._named = set(map(_name, given))
        self._checks_host = bool(given) or _is_loopback(address.host)

    def refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if "content-length" in headers and "transfer-encoding" in headers:
            return Refusal(BAD_REQUEST, "both Content-Length and Transfer-Encoding; send one of them", CLOSE)
        name = _name(host)
        if self._checks_host and host and not (name in self._named or _is_loopback(name)):
            return Refusal(
                FORBIDDEN, f"Host {host!r:.80} is not allowed; start the service with --allowed_hosts={name or 'NAME'}"
            )
        page = None if origin is None else origin.partition("://")[2]
        if page is not None and page.lower() != host.lower() and _name(page) not in self._named:
            return Refusal(FORBIDDEN, f"requests from pages of {origin!r:.80} are refused; see --allowed_hosts")
        return None


def _name(place: str) -> str | None:
    """The host in NAME or NAME:PORT; None if the text is neither."""
    match = _PLACE.fullmatch(place)
    return match and match[1].lower().rstrip(".")


def _is_loopback(name: str | None) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address((name or "").strip("[]")).is_loopback
    except ValueError:
        return False
