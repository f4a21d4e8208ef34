"""Listens, until it is told to stop and what is under way is done."""

from __future__ import annotations

import ipaddress
import math
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from sagl.serve.guard import Guard

_GRACE_SECONDS = 1  # beyond the longest request


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address; a port of 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (")[0]
        raise ValueError(
            f"cannot listen at {host}, port {port}: {reason.lower()}; choose another "
            "--host or --port"
        ) from None


def is_local(host: str) -> bool:
    """Whether only programs of this machine reach this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run(app: Guard, at: socket.socket) -> signal.Signals | None:
    """Answer until a signal comes, then finish what is under way; the signal."""
    received: list[signal.Signals] = []

    def note(number: int, _: Any) -> None:
        received.append(signal.Signals(number))

    # uvicorn takes them while it runs, and raises them once more when it is done.
    taken: dict[signal.Signals, Callable[..., Any] | int | None] = {
        number: signal.signal(number, note)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=math.ceil(app.limits.seconds) + _GRACE_SECONDS,
    )
    try:
        uvicorn.Server(config).run(sockets=[at])
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
    return received[0] if received else None
