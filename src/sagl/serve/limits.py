"""How much one request, and all of them together, may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from sagl.checks import integer, number

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Attributes
    ----------
    megabytes : float
        Of the body of a request, in MiB.
    rows : int
        Samples of a request.
    seconds : float
        From the first byte of a request to the end of its answer.
    requests : int
        Received, waiting or computed at the same time; others are told to come back.
    threads : int
        That compute at the same time.
    """

    megabytes: float = 32
    rows: int = 10_000
    seconds: float = 30
    requests: int = 32
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("megabytes", "seconds"):
            number(name, getattr(self, name), 0, strict=True)
        for name in ("rows", "requests", "threads"):
            integer(name, getattr(self, name), 1)

    @property
    def bytes(self) -> int:
        return int(self.megabytes * MEBIBYTE)
