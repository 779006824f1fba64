"""Passwords in addresses, which libraries quote in their messages."""

from __future__ import annotations

import re

_HIDDEN = "***"
_USER = re.compile(r"(?<=://)[^\s/?#:@]*:[^\s/?#]*@")  # user:password@ of an address
_TOKEN = re.compile(r"(https?://)[^\s/?#]+@", re.IGNORECASE)
_QUERY = re.compile(r"([?&](?:password|passwd|pwd|token|secret|api_?key)=)[^\s&'\"]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """Returns a text without the passwords of its addresses."""
    if "://" not in text:
        return text
    text = _TOKEN.sub(rf"\1{_HIDDEN}@", _USER.sub(f"{_HIDDEN}@", text))
    return _QUERY.sub(rf"\1{_HIDDEN}", text)
