"""What every request passes: the token, and limits of size, number and time."""

from __future__ import annotations

import asyncio
import hmac
import time

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sagl.serve.limits import Limits
from sagl.serve.metrics import Metrics

HEALTH = "/health"
RETRY = {"Retry-After": "1"}


class Guard:
    """An ASGI application in front of another one."""

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None
    ) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self._token = None if token is None else token.encode()
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, noted)
                return
            async with asyncio.timeout(self.limits.seconds):
                await self._admitted(scope, receive, noted)
        except TimeoutError:
            if status == 0:  # else the answer has begun, and ends where it is
                seconds = f"{self.limits.seconds:g}"
                fault = f"not done within {seconds} s; send fewer samples, or later"
                await _failure(503, fault, RETRY)(scope, receive, noted)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path, str(status or 500)).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Only what computes counts as work: the others answer whatever happens."""
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        if self._at_work >= self.limits.requests:
            fault = f"{self._at_work} requests are at work; come back in a second"
            await _failure(429, fault, RETRY)(scope, receive, send)
            return
        self._at_work += 1
        self.metrics.at_work.set(self._at_work)
        try:
            await self.app(scope, self._limited(receive), send)
        finally:
            self._at_work -= 1
            self.metrics.at_work.set(self._at_work)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """What can be said before the body is there."""
        if scope["path"] == HEALTH:
            return None
        headers = dict(scope["headers"])
        if self._token is not None:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            known = hmac.compare_digest(given.strip(), self._token)
            if scheme.lower() != b"bearer" or not known:
                fault = "the token is missing or wrong; send Authorization: Bearer …"
                return _failure(401, fault, {"WWW-Authenticate": "Bearer"})
        length = headers.get(b"content-length", b"0")
        # Digits alone, and not too many to be a number: uvicorn has seen to that.
        if int(length) > self.limits.bytes:
            return _failure(413, self._too_large())
        return None

    def _limited(self, receive: Receive) -> Receive:
        """The same body, given up where it is too large, whatever its headers say."""
        left = self.limits.bytes

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, self._too_large())
            return message

        return limited

    def _too_large(self) -> str:
        most = f"{self.limits.megabytes:g} MiB"
        return f"the body is larger than {most}; send several requests"


def _failure(
    status: int, detail: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"detail": detail}, status, headers)
