"""Training and tasks shared by processes against one process that does it all."""

import socket
import warnings
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.nn import Network, Objective
from sagl.nn.ranks import ALONE, LostProcessError
from sagl.storage import read_tensors, write_tensors
from sagl.training import Callback, Plan, StopWhenStable, Trainer, distributed
from sagl.training.checkpoint import FILE_NAME
from sagl.training.distributed import from_first, same, spread, tensors_from_first
from sagl.training.feed import Feed, Rows, set_standardization
from tests.conftest import clustered_views
from tests.several import in_processes

CPU = torch.device("cpu")
C = 4
STEPS = 50
RECIPES = {  # as in recipes.py
    "network": (Objective(10.0, 1.0, "linear"), {"dropout": 0.1}),
    "paper": (Objective(5.0, 1.0, "log"), {"dropout": 0.1, "gate": "shrink"}),
    "released": (
        Objective(5.0, 0.5, "linear", "one-way", "pairs"),
        {"dropout": 0.1, "gate": "shrink", "gate_input": "features"},
    ),
}


def trained(ranks, objective, options, *, partitions=None):
    """A network after so many steps in float64, and its trainer."""
    views = clustered_views(130, C)[0]  # batches of 44 and 43
    generator = torch.Generator().manual_seed(0)
    network = Network(views.widths, C, generator=generator, **options).double()
    set_standardization(network, views, "standard")
    feed = Feed(views, network, CPU)
    if partitions is not None:
        feed = Rows([h.double() for h in feed(torch.arange(130).numpy())])
    plan = Plan(batch_size=44, steps=STEPS, learning_rate=1e-2, seed=7)
    trainer = Trainer(
        network,
        objective,
        feed,
        plan,
        CPU,
        [StopWhenStable(0.0, 99)],
        partitions,
        ranks,
    )
    trainer.run()
    return network, trainer


def every_recipe(ranks):
    runs = {name: trained(ranks, *recipe) for name, recipe in RECIPES.items()}
    partitions = [torch.arange(130) % C, torch.arange(130) // 33]
    options = {"z_width": 3, "self_loops": False}
    runs["default"] = trained(ranks, Objective(0, 0), options, partitions=partitions)
    return runs


@cache
def by_one_process():
    return every_recipe(ALONE)


def check_training(ranks):
    for name, found in every_recipe(ranks).items():
        compare(name, found, by_one_process()[name])


def compare(name, found, expected):
    (network, trainer), (one, alone) = found, expected
    assert trainer.step == alone.step == STEPS
    for (part, a), b in zip(network.named_parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(
            a, b, rtol=1e-10, atol=1e-10, msg=lambda m, p=part: f"{name}, {p}: {m}"
        )
    assert torch.equal(trainer.labels, alone.labels)
    for record, other in zip(trainer.history, alone.history, strict=True):
        assert record.keys() == other.keys()
        for key in record.keys() - {"loss", "pseudo_label", "diversity", "alignment"}:
            assert record[key] == other[key], (name, key)
        assert abs(record["loss"] - other["loss"]) < 1e-5 * abs(other["loss"])


def test_the_model_is_the_same_for_one_to_four_processes():
    in_processes(4, check_training)


@contextmanager
def working_as(ranks):
    """As if these processes had joined."""
    before, distributed._joined = distributed._joined, ranks
    try:
        yield
    finally:
        distributed._joined = before


class Interrupted(Callback):
    """Ends a fit in the middle of its training, or before it where that comes last."""

    def on_train_begin(self, trainer):
        if trainer.partitions is not None:
            raise KeyboardInterrupt

    def on_record(self, trainer):
        if trainer.step >= 30:
            raise KeyboardInterrupt


FITS = {
    "paper": {"recipe": "paper", "steps": 60, "batch_size": 44},
    "default": {"search": {"starts": 3, "proposals": 25, "steps": 15}, "steps": 5},
}


def fit(name, directory=None, callbacks=()):
    views = clustered_views(130, C, spread=1.2)[0]
    options = {"checkpoint_dir": directory, "checkpoint_seconds": 0}
    model = SAGL(C, random_state=0, callbacks=callbacks, **options, **FITS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # clusters that are left empty
        return model.fit(views)


def check_interrupted(ranks, folder):
    """What so many processes leave unfinished, one more takes to its end."""
    for name in FITS:
        before, now = (Path(folder) / f"{name}-{ranks.count - k}" for k in (1, 0))
        with working_as(ranks):
            if before.exists():
                same_as_one(fit(name, before), name)
            with pytest.raises(KeyboardInterrupt):
                fit(name, now, [Interrupted()])
            if ranks.first and name == "default":
                forget_all_but(5, now / FILE_NAME)
            ranks.barrier()


def forget_all_but(count, path):
    """As a search that was killed earlier would have left it."""
    tensors, metadata = read_tensors(path)
    assert len(tensors["partitions"]) > count
    write_tensors(path, {"partitions": tensors["partitions"][:count]}, metadata)


@cache
def fitted_by_one(name):
    with working_as(ALONE):
        return fit(name)


def same_as_one(model, name):
    expected = fitted_by_one(name)
    assert np.array_equal(model.labels_, expected.labels_), name
    assert model.history_[-1].keys() == expected.history_[-1].keys()
    if name == "default":
        assert model.score_ == expected.score_
        assert model.cluster_sizes_ == expected.cluster_sizes_
    weights = expected.network_.state_dict()
    for part, tensor in model.network_.state_dict().items():
        torch.testing.assert_close(tensor, weights[part], rtol=1e-3, atol=1e-5)


def test_what_some_begin_others_end(tmp_path):
    in_processes(3, check_interrupted, str(tmp_path))


def check_tasks(ranks):
    asked = []

    def task(i):
        asked.append(i)
        return torch.full((i,), float(i)), torch.tensor(i)

    with working_as(ranks):
        results = spread([partial(task, i) for i in range(7)])
        for i, (numbers, label) in zip(range(5), results, strict=False):
            assert numbers.tolist() == [i] * i
            assert int(label) == i
        assert asked == list(range(ranks.index, len(asked) * ranks.count, ranks.count))
        assert len(asked) < 7 or ranks.count == 1
        found = from_first(lambda: b"of the first" if ranks.first else b"")
        assert found == b"of the first"
        file = ({"x": torch.arange(3)}, {"of": "run"}) if ranks.first else None
        tensors, metadata = tensors_from_first(lambda: file)
        assert tensors["x"].tolist() == [0, 1, 2]
        assert metadata == {"of": "run"}
        assert tensors_from_first(lambda: None) is None
        same("data", "alike")
        if ranks.count > 1:
            with pytest.raises(ValueError, match=r"process 1 has other data than"):
                same("data", f"data {ranks.index}")


def test_tasks_and_files_are_shared():
    in_processes(3, check_tasks)
    check_tasks(ALONE)


def test_alone_nothing_is_joined(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with distributed.joined() as ranks:
        assert ranks is distributed.ranks() is ALONE
    assert distributed.first_to_fail()


def test_a_torchrun_that_is_gone_is_not_waited_for(monkeypatch):
    """It keeps the store in which its processes meet, so that nobody will come."""
    monkeypatch.setattr(distributed, "_STORE_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    distributed._reach_torchrun(place)  # who meets elsewhere may come later
    with pytest.raises(LostProcessError, match="torchrun cannot be reached any more"):
        distributed._reach_torchrun({**place, "TORCHELASTIC_USE_AGENT_STORE": "True"})
