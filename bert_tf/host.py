"""The host's device, which computes what a GPU would have to be waited for: rows, seeds, sizes, time stamps."""

from __future__ import annotations

HOST = "/device:CPU:0"
