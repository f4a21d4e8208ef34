"""Training and tasks shared by processes against one process that does it all."""

from functools import cache

import torch

from sagl.nn import Network, Objective
from sagl.nn.ranks import ALONE
from sagl.training import Plan, StopWhenStable, Trainer
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
