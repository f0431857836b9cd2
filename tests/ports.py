"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket

RANGE = range(20_000, 32_000)
"""Below what Linux gives to connections (from 32,768) and above the ports of Ray's workers."""


def free_port() -> int:
    """Return a port that nobody listens at, and that no connection is given in the meantime."""
    while True:
        port = random.choice(RANGE)
        with socket.socket() as sock:
            try:
                sock.bind(("", port))
            except OSError:
                continue
            return port
