"""Real processes that talk to each other, for tests of what they do together."""

import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes

from sagl.nn.ranks import Ranks


def in_processes(count, check, *arguments, seconds=250):
    """``check(ranks, *arguments)`` in 1, 2, … and ``count`` processes, started once.

    A process that is not among the first so many waits for those that are. What one of
    them raises is raised here.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        # Forked, so that nobody has to import everything again; all have one thread.
        context = start_processes(
            _begin,
            (count, str(store), check, arguments),
            nprocs=count,
            join=False,
            start_method="fork",
        )
        deadline = time.monotonic() + seconds
        while not context.join(timeout=1):
            if time.monotonic() > deadline:
                for process in context.processes:
                    process.kill()
                raise TimeoutError(f"{count} processes took more than {seconds} s")


def _begin(index, count, store, check, arguments):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=index, world_size=count
    )
    groups = [dist.new_group(range(size)) for size in range(1, count + 1)]
    for size, group in enumerate(groups, start=1):
        if index < size:
            check(Ranks(group), *arguments)
        dist.barrier()
    dist.destroy_process_group()
