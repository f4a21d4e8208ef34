"""The processes of one job, on PyTorch's own engine: torchrun starts and ends them.

    torchrun --nproc-per-node 4 -m sagl fit …

Each process runs the same program on the same data. ``joined`` makes a group of them,
``ranks()`` says anywhere below it which process this is, and ``spread`` has each
compute some of several tasks. One that dies ends all: what waits for it fails at once,
or torchrun ends it, or it finds that the other has been silent for too long.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load as tensors_of_bytes
from safetensors.torch import save as bytes_of_tensors
from torch import Tensor

from sagl.nn.ranks import ALONE, LostProcessError, Ranks
from sagl.processes import end_with_torchrun, told_to_end

__all__ = ["joined", "ranks"]

_METADATA = "metadata"
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Some wait for others as long as these compute; deaths are noticed otherwise.
_PATIENCE = timedelta(days=30)
_STORE_SECONDS = 10.0
_BEAT_SECONDS = 3.0
_SILENCE_SECONDS = 40.0
_GRACE_SECONDS = 5.0
_FAILED = "failed"

_joined = ALONE


def ranks() -> Ranks:
    """The processes that this one has joined; by default it is alone."""
    return _joined


def started_together(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether torchrun, or something like it, started this process with others."""
    there = all(name in environment for name in _NEEDED)
    return there and int(environment["WORLD_SIZE"]) > 1


@contextmanager
def joined(device: torch.device | None = None) -> Iterator[Ranks]:
    """Work together with the other processes that torchrun has started, if any.

    Parameters
    ----------
    device : torch.device, optional
        Of this process. On CUDA, what is on the GPU goes by NCCL, all else by gloo.

    Examples
    --------
    >>> from sagl.training.distributed import joined
    >>> with joined() as ranks:
    ...     ranks.count
    1
    """
    global _joined
    if _joined is not ALONE or not started_together():
        yield _joined
        return
    end_with_torchrun()
    cuda = device is not None and device.type == "cuda"
    if cuda:
        torch.cuda.set_device(device)
    own = not dist.is_initialized()
    if own:
        _reach_torchrun()
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    _joined = Ranks(dist.new_group(timeout=_PATIENCE))
    try:
        with _watching(_joined), told_to_end(say_first):
            yield _joined
            _joined.barrier()  # whoever leaves early would look like one that died
    finally:
        _joined = ALONE
        if own:
            dist.destroy_process_group()


def from_first(make: Callable[[], bytes]) -> bytes:
    """What the first process makes, in all of them; only there it is made."""
    here = ranks()
    if here.count == 1:
        return make()
    content = make() if here.first else b""
    return _bytes_of(here.gather_vectors(_vector(content))[0])


TensorFile = tuple[dict[str, Tensor], dict[str, str]]  # with its metadata


def tensors_from_first(read: Callable[[], TensorFile | None]) -> TensorFile | None:
    """What the first process reads, in all of them: others may not have the file."""
    if ranks().count == 1:
        return read()

    def packed() -> bytes:
        found = read()
        if found is None:
            return b""
        noted = {_METADATA: _vector(json.dumps(found[1]))}
        return bytes_of_tensors({**found[0], **noted})

    content = from_first(packed)
    if not content:
        return None
    tensors = tensors_of_bytes(content)
    return tensors, json.loads(_bytes_of(tensors.pop(_METADATA)))


def same(what: str, value: str) -> None:
    """Refuse to work together where processes differ."""
    here = ranks()
    values = [_bytes_of(v).decode() for v in here.gather_vectors(_vector(value))]
    for i, other in enumerate(values):
        if other != values[0]:
            raise ValueError(
                f"process {i} has other {what} than process 0: {other} and {values[0]};"
                " give all processes the same"
            )


Result = tuple[Tensor, ...]


def spread(
    tasks: Sequence[Callable[[], Result]], device: torch.device | None = None
) -> Iterator[Result]:
    """The results of tasks, in order, each computed by one of the processes.

    Alone, each is computed when it is asked for. With others, as many as there are
    processes are computed at once when the first of them is asked for. All processes
    must ask alike.
    """
    here, left = ranks(), iter(tasks)
    while together := list(islice(left, here.count)):
        if here.count == 1:
            yield together[0]()
            continue
        own: Result = ()
        if here.index < len(together):
            own = together[here.index]()
        named = {str(i): x.detach().cpu().contiguous() for i, x in enumerate(own)}
        gathered = here.gather_vectors(_vector(bytes_of_tensors(named)))
        for content in gathered[: len(together)]:
            found = tensors_of_bytes(_bytes_of(content))
            yield tuple(found[str(i)].to(device) for i in range(len(found)))


def first_to_fail(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the first of its job to report a failure.

    One that is alone always is, and one that cannot ask.
    """
    if not started_together(environment):
        return True
    try:
        store = _store(environment)
        return bool(store.add(_key("failures", environment), 1) == 1)
    except (RuntimeError, ValueError):
        return True


def say_first(why: str) -> None:
    """Why a process ends, in one line, unless another has said so."""
    if first_to_fail():
        sys.stderr.write(f"sagl: error: {why}\n")
        sys.stderr.flush()


def _vector(content: bytes | str) -> Tensor:
    raw = content.encode() if isinstance(content, str) else content
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else _EMPTY


_EMPTY = torch.zeros(0, dtype=torch.uint8)


def _bytes_of(vector: Tensor) -> bytes:
    return bytes(vector.numpy())


def _key(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """A name in the store that belongs to this start of the job."""
    return f"sagl/{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}/{name}"


def _store(environment: Mapping[str, str] = os.environ) -> Any:
    """A connection of one's own to the store in which the processes have met."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    seconds = timedelta(seconds=_STORE_SECONDS)
    return TCPStore(address, port, timeout=seconds, wait_for_workers=False)


def _reach_torchrun(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse to wait for processes that nobody is left to start.

    Where torchrun keeps the store, it is there before they are.
    """
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        try:
            _store(environment)
        except RuntimeError:
            raise LostProcessError(
                "torchrun cannot be reached any more; the same command takes up what "
                "was done"
            ) from None


@contextmanager
def _watching(here: Ranks) -> Iterator[None]:
    """End this process when another has failed, or has been silent for too long.

    gloo notices by itself that a process has died. NCCL, and machines that are lost
    altogether, need somebody who looks.
    """
    store, ended = _store(), threading.Event()
    watch = threading.Thread(target=_watch, args=(here, store, ended), daemon=True)
    watch.start()
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):
            store.set(_key(_FAILED), "1")
        raise
    finally:
        ended.set()
        watch.join()


def _watch(here: Ranks, store: Any, ended: threading.Event) -> None:
    """Each process shows that it lives, and looks at the next one."""
    mine, other = here.index, (here.index + 1) % here.count
    beats, last, at, before = 0, b"", time.monotonic(), time.monotonic()
    while not ended.wait(_BEAT_SECONDS):
        try:
            beats += 1
            store.set(_key(f"alive/{mine}"), str(beats))
            failed = store.check([_key(_FAILED)])
            name = _key(f"alive/{other}")
            beat = store.get(name) if store.check([name]) else b""
        except RuntimeError:
            _end(ended, "torchrun cannot be reached any more")
            return
        now = time.monotonic()
        if beat != last or now - before > _SILENCE_SECONDS / 2:  # or it was us
            last, at = beat, now
        before = now
        if failed:
            _end(ended, "another process of this job has failed")
        elif now - at > _SILENCE_SECONDS:
            with suppress(RuntimeError):
                store.set(_key(_FAILED), "1")
            _end(ended, f"process {other} has been silent for {now - at:.0f} s")


def _end(ended: threading.Event, why: str) -> None:
    """End the process, unless it does so by itself; it may wait in vain for another."""
    if ended.wait(_GRACE_SECONDS):
        return
    say_first(f"{why}; the same command takes up what was done")
    os._exit(1)
