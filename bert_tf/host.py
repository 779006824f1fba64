"""The host device, for small computations that would wait for a GPU: rows, seeds, sizes, time stamps."""

from __future__ import annotations

HOST = "/device:CPU:0"
