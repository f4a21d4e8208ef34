"""Peers of sagl.baselines beside the same methods written the straightforward way.

    python benchmarks/peers.py --data ../shared/data --methods turtle --steps 60

Direct: torch modules, torch.optim and autograd, as one would write the method down
from its paper. Both run in turn on the same features with one thread. Seconds are
processor time of the fit, which other work on the machine disturbs least; ours labels
the training samples too. Each test sample is predicted alone; labels only score.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from data import DEFAULT_VIEWS, Split, load
from sagl import Views
from sagl.baselines import TURTLE
from sagl.evaluation import clustering_scores

MEASURES = ("acc", "nmi", "ari")
Predict = Callable[[Views], NDArray[np.int64]]
# Training views, number of clusters, steps, seed -> what labels new samples.
Fit = Callable[[Views, int, int, int], Predict]


class Centered:
    """Views as float32 tensors: centred, mean distance from the centre 10."""

    def __init__(self, views: Views) -> None:
        arrays = [array.astype(np.float64) for _, array in views.items()]
        self.means = [h.mean(axis=0) for h in arrays]
        self.lengths = [
            np.linalg.norm(h - mean, axis=1).mean()
            for h, mean in zip(arrays, self.means, strict=True)
        ]

    def __call__(self, views: Views) -> list[Tensor]:
        arrays = [array for _, array in views.items()]
        return [
            torch.from_numpy(((h - mean) * (10 / length)).astype(np.float32))
            for h, mean, length in zip(arrays, self.means, self.lengths, strict=True)
        ]


def direct_turtle(views: Views, n_clusters: int, steps: int, seed: int) -> Predict:
    torch.manual_seed(seed)
    scale = Centered(views)
    features = scale(views)
    n, widths = len(views), views.widths
    tasks = nn.ModuleList(weight_norm(nn.Linear(d, n_clusters)) for d in widths)
    outer = torch.optim.Adam(tasks.parameters(), lr=1e-3)
    for _ in range(steps):
        rows = torch.randperm(n)[: min(10_000, n)]
        batch = [h[rows] for h in features]
        q = [task(h).softmax(dim=1) for task, h in zip(tasks, batch, strict=True)]
        labels = torch.stack(q).mean(dim=0)
        heads = nn.ModuleList(nn.Linear(d, n_clusters) for d in widths)
        inner = torch.optim.Adam(heads.parameters(), lr=1e-3)
        for _ in range(10):
            loss = disagreement(heads, batch, labels.detach())
            inner.zero_grad()
            loss.backward()
            inner.step()
        heads.requires_grad_(False)
        entropy = sum(torch.special.entr(view.mean(dim=0)).sum() for view in q)
        loss = disagreement(heads, batch, labels) - 10 * entropy
        outer.zero_grad()
        loss.backward()
        outer.step()

    @torch.no_grad()
    def predict(new: Views) -> NDArray[np.int64]:
        q = [task(h).softmax(dim=1) for task, h in zip(tasks, scale(new), strict=True)]
        return torch.stack(q).mean(dim=0).argmax(dim=1).numpy()

    return predict


def disagreement(heads: nn.ModuleList, batch: list[Tensor], labels: Tensor) -> Tensor:
    losses = [
        F.cross_entropy(head(h), labels) for head, h in zip(heads, batch, strict=True)
    ]
    return torch.stack(losses).sum()


def our_turtle(views: Views, n_clusters: int, steps: int, seed: int) -> Predict:
    return TURTLE(n_clusters, steps=steps, random_state=seed).fit(views).predict


class Peer(NamedTuple):
    direct: Fit
    ours: Fit


PEERS = {
    "turtle": Peer(direct_turtle, our_turtle),
}


def run(fit: Fit, split: Split, steps: int, seed: int) -> dict[str, float]:
    start = time.process_time()
    predict = fit(split.train, split.n_clusters, steps, seed)
    seconds = time.process_time() - start
    scores = clustering_scores(split.test_labels, predict(split.test))
    return {"seconds": seconds, **{name: scores[name] for name in MEASURES}}


def compare(peer: Peer, split: Split, steps: int, seeds: int) -> list[list[str]]:
    """Rows of a table, the last one of medians; the two take turns in going first."""
    for fit in peer:  # torch loads parts of itself when they are first used
        fit(split.train, split.n_clusters, 1, 0)
    runs: list[dict[str, dict[str, float]]] = []
    for seed in range(seeds):
        order = peer._fields if seed % 2 == 0 else peer._fields[::-1]
        runs.append(
            {name: run(getattr(peer, name), split, steps, seed) for name in order}
        )
    median = {
        name: {key: float(np.median([r[name][key] for r in runs])) for key in values}
        for name, values in runs[0].items()
    }
    ratios = [r["direct"]["seconds"] / r["ours"]["seconds"] for r in runs]
    ratios.append(float(np.median(ratios)))
    names = [*map(str, range(seeds)), "median"]
    return [
        [
            name,
            f"{r['direct']['seconds']:.1f} s",
            f"{r['ours']['seconds']:.1f} s",
            f"{ratio:.2f} ×",
            *(" / ".join(f"{r[who][m]:.3f}" for m in MEASURES) for who in peer._fields),
        ]
        for name, r, ratio in zip(names, [*runs, median], ratios, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--methods", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--set", choices=DEFAULT_VIEWS, default="pets_clip")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = load(options.data, options.set)
    for method in options.methods:
        print(f"{method} on {options.set}, {options.steps} steps, one thread")
        print("| seed | direct | ours | ratio | ACC / NMI / ARI direct | ours |")
        print("|---|---|---|---|---|---|")
        for row in compare(PEERS[method], split, options.steps, options.seeds):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
