"""Rows of several requests are asked about together, and nobody notices."""

import asyncio
import threading

import numpy as np
import pytest

from sagl.serve.batching import ROWS, Batcher
from tests.serve.conftest import some


class Watched:
    """The model, which waits until it may answer and notes how it was asked."""

    def __init__(self, model):
        self.model, self.asked = model, []
        self.may = threading.Event()
        self.may.set()
        self.fault = None

    def predict_proba(self, views):
        self.asked.append(len(views))
        assert self.may.wait(10)
        if self.fault is not None:
            raise self.fault
        return self.model.predict_proba(views)

    def neighbours(self, views, n):
        return self.model.neighbours(views, n)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


@pytest.fixture
def watched(model):
    return Watched(model)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_bits_under_concurrency(model, new, threads):
    rng = np.random.default_rng(0)
    sizes = [1, 2, 255, 256, 257, 300, *rng.integers(1, 40, size=60).tolist()]
    requests = [rng.integers(0, len(new), size=n) for n in sizes]
    expected = model.predict_proba(new)
    near = model.neighbours(new, 3)
    batcher = Batcher(model, threads)

    async def main():
        asked = (
            batcher.ask(some(new, rows), neighbours=3 * (i % 2))
            for i, rows in enumerate(requests)
        )
        return await asyncio.gather(*asked)

    answers = run(main())
    batcher.close()
    for i, (rows, said) in enumerate(zip(requests, answers, strict=True)):
        assert (said.q == expected[rows]).all()
        assert said.neighbours == ([near[row] for row in rows] if i % 2 else [])


def test_small_requests_share_a_block_and_large_ones_are_cut(watched, new):
    watched.may.clear()
    batcher = Batcher(watched)

    async def main():
        first = asyncio.create_task(batcher.ask(new[:1]))
        while not watched.asked:
            await asyncio.sleep(0.001)
        tasks = [asyncio.create_task(batcher.ask(new[i : i + 9])) for i in range(20)]
        tasks.append(asyncio.create_task(batcher.ask(new[:300])))
        await asyncio.sleep(0)
        watched.may.set()
        await asyncio.gather(first, *tasks)

    run(main())
    batcher.close()
    assert watched.asked == [1, 180, ROWS, 300 - ROWS]


def test_who_has_given_up_costs_nothing(watched, new):
    watched.may.clear()
    batcher = Batcher(watched)

    async def main():
        first = asyncio.create_task(batcher.ask(new[:1]))
        while not watched.asked:
            await asyncio.sleep(0.001)
        late = asyncio.create_task(batcher.ask(new[:300]))
        other = asyncio.create_task(batcher.ask(new[:5]))
        await asyncio.sleep(0)
        late.cancel()
        await asyncio.sleep(0)
        watched.may.set()
        return await asyncio.gather(first, other)

    _, other = run(main())
    batcher.close()
    assert sum(watched.asked) == 6
    assert (other.q == watched.model.predict_proba(new[:5])).all()


@pytest.mark.parametrize("fault", [MemoryError("full"), RuntimeError("x")])
def test_a_fault_reaches_who_waits_and_ends_no_thread(watched, new, fault):
    batcher = Batcher(watched)

    async def main():
        watched.fault = fault
        with pytest.raises(type(fault), match=str(fault)):
            await batcher.ask(new)
        watched.fault = None
        return await batcher.ask(new[:3])

    assert len(run(main()).q) == 3
    batcher.close()


def test_closing_finishes_what_waits(watched, new):
    watched.may.clear()
    batcher = Batcher(watched)

    async def main():
        asked = asyncio.create_task(batcher.ask(new))
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await asyncio.sleep(0.01)
        watched.may.set()
        await closing
        return await asked

    assert len(run(main()).q) == 300
