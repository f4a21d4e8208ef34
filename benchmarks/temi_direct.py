"""TEMI beside the same method written the straightforward way.

    python benchmarks/temi_direct.py --data ../shared/data

pets_clip, both views. The direct version below is the usual PyTorch: a list of
weight-normalised nn.Linear heads, a Python loop over them, autograd through the loss,
torch.optim.AdamW, a teacher that is a deep copy. Both search neighbours, train for some
epochs and label the test samples; they run in turn in one process, and medians over
the repetitions are compared. Quality after so few epochs is low: --epochs 200 trains
to the end, in minutes a run.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from data import Split, load
from sagl import Views
from sagl.baselines.temi import TEMI
from sagl.evaluation import clustering_accuracy

NEIGHBOURS = 50
BETA = 0.6
TEMPERATURE = 0.1
MOMENTUM = 0.996

Run = Callable[[Split, argparse.Namespace, int], tuple[float, float]]


def joined(views: Views, means: list[Tensor]) -> Tensor:
    parts = [
        nn.functional.normalize(torch.from_numpy(h.astype(np.float32)) - mean, dim=1)
        for (_, h), mean in zip(views.items(), means, strict=True)
    ]
    return torch.cat(parts, dim=1)


def direct_loss(
    students: list[Tensor], teachers: list[Tensor], shares: list[Tensor]
) -> Tensor:
    """Per head softmaxes of the batch's samples and neighbours, (2B, C) each."""
    q_s = [torch.softmax(s / TEMPERATURE, dim=1).chunk(2) for s in students]
    q_t = [torch.softmax(t / TEMPERATURE, dim=1).chunk(2) for t in teachers]
    weight = sum((a * b).sum(dim=1) for a, b in q_t) / len(q_t)
    losses = []
    for (s, s_other), (t, t_other), share in zip(q_s, q_t, shares, strict=True):
        share.mul_(0.9).add_(0.1 * torch.cat([t, t_other]).mean(dim=0))
        one = torch.log(((s * t_other) ** BETA / share).sum(dim=1))
        other = torch.log(((s_other * t) ** BETA / share).sum(dim=1))
        losses.append(-(weight * (one + other) / 2).mean())
    return torch.stack(losses)


def run_direct(
    split: Split, options: argparse.Namespace, seed: int
) -> tuple[float, float]:
    torch.manual_seed(seed)
    start = time.perf_counter()
    means = [
        torch.from_numpy(h.astype(np.float32)).mean(dim=0)
        for _, h in split.train.items()
    ]
    x = joined(split.train, means)
    n, width = x.shape
    similarity = x @ x.T
    similarity.fill_diagonal_(-torch.inf)
    neighbours = similarity.topk(NEIGHBOURS, dim=1).indices
    heads = nn.ModuleList(
        weight_norm(nn.Linear(width, split.n_clusters, bias=False))
        for _ in range(options.heads)
    )
    for head in heads:
        nn.init.ones_(head.parametrizations.weight.original0)
    teachers = copy.deepcopy(heads).requires_grad_(False)
    shares = [torch.full((split.n_clusters,), 1 / split.n_clusters) for _ in heads]
    optimizer = torch.optim.AdamW(heads.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(options.epochs):
        total = torch.zeros(len(heads))
        for rows in torch.randperm(n).split(options.batch_size):
            others = neighbours[rows, torch.randint(NEIGHBOURS, (len(rows),))]
            batch = torch.cat([x[rows], x[others]])
            with torch.no_grad():
                taught = [teacher(batch) for teacher in teachers]
            losses = direct_loss([head(batch) for head in heads], taught, shares)
            optimizer.zero_grad()
            losses.sum().backward()
            optimizer.step()
            total += losses.detach()
            with torch.no_grad():
                for t, s in zip(teachers.parameters(), heads.parameters(), strict=True):
                    t.mul_(MOMENTUM).add_((1 - MOMENTUM) * s)
    with torch.no_grad():
        logits = teachers[int(total.argmin())](joined(split.test, means))
    seconds = time.perf_counter() - start
    return seconds, clustering_accuracy(split.test_labels, logits.argmax(dim=1).numpy())


def run_ours(
    split: Split, options: argparse.Namespace, seed: int
) -> tuple[float, float]:
    start = time.perf_counter()
    model = TEMI(
        split.n_clusters,
        heads=options.heads,
        epochs=options.epochs,
        batch_size=options.batch_size,
        random_state=seed,
    ).fit(split.train)  # with the labels of the training samples
    predicted = model.predict(split.test)
    seconds = time.perf_counter() - start
    return seconds, clustering_accuracy(split.test_labels, predicted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--heads", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    split = load(options.data, "pets_clip")
    print(
        f"heads: {options.heads}, epochs: {options.epochs}, batch: "
        f"{options.batch_size}, threads: {options.threads}"
    )
    print("| seed | direct | ours | ratio | ACC direct | ACC ours |")
    print("|---|---|---|---|---|---|")
    rows = []
    for seed in range(options.repeats):
        # In turn, and the other one first every second time.
        order: list[Run] = [run_direct, run_ours]
        if seed % 2:
            order.reverse()
        results = {run: run(split, options, seed) for run in order}
        (direct, acc_direct), (ours, acc_ours) = results[run_direct], results[run_ours]
        rows.append((direct, ours, direct / ours, acc_direct, acc_ours))
        print_row(str(seed), rows[-1])
    print_row("median", tuple(np.median(rows, axis=0)))


def print_row(name: str, row: tuple[float, ...]) -> None:
    direct, ours, ratio, acc_direct, acc_ours = row
    print(
        f"| {name} | {direct:.1f} s | {ours:.1f} s | {ratio:.2f} × "
        f"| {acc_direct:.3f} | {acc_ours:.3f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
