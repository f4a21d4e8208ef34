"""Limits of size, number and time, and the token, whatever is behind them."""

import asyncio

import httpx
import pytest

from sagl.serve.guard import Guard
from sagl.serve.limits import Limits
from sagl.serve.metrics import Metrics


class Echo:
    """Answers with the length of the body, when it may."""

    def __init__(self):
        self.may = asyncio.Event()
        self.may.set()
        self.began = 0

    async def __call__(self, scope, receive, send):
        self.began += 1
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await self.may.wait()
        start = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        await send({"type": "http.response.body", "body": f"{size}".encode()})


def guarded(token=None, **limits):
    echo = Echo()
    return echo, Guard(echo, Limits(**limits), Metrics(), token)


def client_of(guard):
    transport = httpx.ASGITransport(guard)
    return httpx.AsyncClient(transport=transport, base_url="http://here")


def run(main):
    return asyncio.run(asyncio.wait_for(main, 20))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        ("Bearer secret", 200),
        ("bearer secret", 200),
        ("Bearer  secret ", 200),
        ("Bearer secre", 401),
        ("Bearer secrets", 401),
        ("Bearer Secret", 401),
        ("Basic secret", 401),
        ("secret", 401),
        ("Bearer", 401),
        ("", 401),
    ],
)
def test_a_token_is_asked_for(given, status):
    async def main():
        echo, guard = guarded("secret")
        headers = {} if given is None else {"Authorization": given}
        async with client_of(guard) as client:
            answer = await client.get("/model", headers=headers)
            post = await client.post("/predict", headers=headers)
            assert (await client.get("/health")).status_code == 200
        return answer, post, echo

    answer, post, echo = run(main())
    assert answer.status_code == post.status_code == status
    assert echo.began == (3 if status == 200 else 1)
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "token" in answer.json()["detail"]


def test_too_large_a_body_is_refused_before_it_is_read():
    async def main():
        echo, guard = guarded(megabytes=0.001)
        async with client_of(guard) as client:
            small = await client.post("/predict", content=b"x" * 1048)
            large = await client.post("/predict", content=b"x" * 1049)
        return echo, small, large

    echo, small, large = run(main())
    assert (small.status_code, small.text) == (200, "1048")
    assert large.status_code == 413
    assert large.json()["detail"].startswith("the body is larger than 0.001 MiB")
    assert echo.began == 1


def test_others_are_told_to_come_back():
    async def main():
        echo, guard = guarded(requests=2)
        echo.may.clear()
        async with client_of(guard) as client:
            at_work = [asyncio.create_task(client.post("/predict")) for _ in range(2)]
            while echo.began < 2:
                await asyncio.sleep(0.001)
            refused = await client.post("/predict")
            echo.may.set()
            done = [(await task).status_code for task in at_work]
            later = await client.post("/predict")
        return refused, done, later

    refused, done, later = run(main())
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert done == [200, 200]
    assert later.status_code == 200


def test_what_takes_too_long_is_given_up():
    async def main():
        echo, guard = guarded(seconds=0.05, requests=1)
        echo.may.clear()
        async with client_of(guard) as client:
            late = await client.post("/predict")
            echo.may.set()
            later = await client.post("/predict")
        return late, later

    late, later = run(main())
    assert late.status_code == 503
    assert late.headers["retry-after"] == "1"
    assert "not done within 0.05 s" in late.json()["detail"]
    assert later.status_code == 200, "its place is free again"


@pytest.mark.parametrize(
    "wrong",
    [{"megabytes": 0}, {"rows": 0}, {"seconds": -1}, {"requests": 1.5}, {"threads": 0}],
)
def test_limits_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)
