"""A whole training run beside the same run written the straightforward way.

    python benchmarks/training.py --data ../shared/data --recipe paper

pets_clip with the paper's settings: batch 100, lr 1e-3, γ 5, dropout 0.1, 200 epochs;
with the paper's equations (the gate reads z, β 1) or as the authors released them (the
gate reads the features, β 0.5, other forms of the losses). The reference below is the
usual PyTorch: a DataLoader over a TensorDataset, modules with weight_norm, dense
attention with the entmax package's sort. Both are timed in turn in one process; quality
is that of the batch protocol on shuffled test samples. Needs: pip install -c
constraints.txt entmax.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from entmax import entmax15
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, TensorDataset

from data import Split, load
from sagl import SAGL
from sagl.evaluation import clustering_accuracy, evaluate

BATCH = 100


class ReferenceView(nn.Module):
    def __init__(self, width: int, n_clusters: int, recipe: str) -> None:
        super().__init__()
        self.linear = weight_norm(nn.Linear(width, n_clusters))
        self.U = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * [n_clusters])))
        self.V = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * [n_clusters])))
        self.gate_reads_z = recipe == "paper"
        read = n_clusters if self.gate_reads_z else width
        self.gate = nn.Sequential(
            nn.Linear(read, read // 2),
            nn.ReLU(),
            nn.Linear(read // 2, 1),
            nn.Sigmoid(),
        )
        self.dropout = nn.Dropout(0.1)
        self.bias = nn.Parameter(torch.zeros(n_clusters))

    def forward(self, h: Tensor) -> Tensor:
        z = self.linear(h)
        scores = (z @ self.U) @ (z @ self.V).T / z.shape[1] ** 0.5
        gate = 1 - self.gate(z if self.gate_reads_z else h)
        A = self.dropout(entmax15(scores * gate, dim=1))
        return torch.softmax(A @ z + z + self.bias, dim=1)


def reference_loss(q: list[Tensor], recipe: str) -> Tensor:
    labels = torch.stack(q).mean(dim=0).argmax(dim=1)
    chosen = [p.gather(1, labels[:, None]) for p in q]
    log_q = [p.clamp(min=1e-8).log() for p in q]
    means = [p.mean(dim=0) for p in q]
    diversity = sum((m * m.log()).sum() for m in means)
    alignment = -(q[1] * log_q[0]).sum(dim=1).mean()
    if recipe == "released":
        pseudo = -sum(p.mean() for p in chosen)
        return pseudo + 5.0 * diversity + 0.5 * alignment
    pseudo = -sum(p.clamp(min=1e-8).log().mean() for p in chosen)
    alignment = alignment - (q[0] * log_q[1]).sum(dim=1).mean()
    return pseudo + 5.0 * diversity + alignment


def run_reference(
    split: Split, recipe: str, epochs: int, seed: int
) -> tuple[float, float]:
    torch.manual_seed(seed)
    train = [torch.from_numpy(a.astype(np.float32)) for _, a in split.train.items()]
    test = [torch.from_numpy(a.astype(np.float32)) for _, a in split.test.items()]
    views = nn.ModuleList(
        ReferenceView(h.shape[1], split.n_clusters, recipe) for h in train
    )
    start = time.perf_counter()
    loader = DataLoader(TensorDataset(*train), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.Adam(views.parameters(), lr=1e-3)
    for _ in range(epochs):
        for batch in loader:
            q = [view(h) for view, h in zip(views, batch, strict=True)]
            loss = reference_loss(q, recipe)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds = time.perf_counter() - start
    views.eval()
    order = torch.randperm(len(test[0]))
    predicted = torch.empty(len(order), dtype=torch.int64)
    with torch.no_grad():
        for rows in order.split(BATCH):
            q = [view(h[rows]) for view, h in zip(views, test, strict=True)]
            predicted[rows] = torch.stack(q).mean(dim=0).argmax(dim=1)
    return seconds, clustering_accuracy(split.test_labels, predicted.numpy())


def run_ours(split: Split, recipe: str, epochs: int, seed: int) -> tuple[float, float]:
    model = SAGL(
        split.n_clusters,
        recipe=recipe,
        batch_size=BATCH,
        epochs=epochs,
        tolerance=0.0,
        random_state=seed,
    )
    start = time.perf_counter()
    model.fit(split.train)  # with the anchors and the labels of the training samples
    seconds = time.perf_counter() - start
    scores = evaluate(model, split.test, split.test_labels, "batch", batch_size=BATCH)
    return seconds, scores["acc"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--recipe", choices=("paper", "released"), default="paper")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    split = load(options.data, "pets_clip")
    print(
        f"recipe: {options.recipe}, threads: {options.threads}, "
        f"epochs: {options.epochs}"
    )
    print("| seed | reference | ours | ratio | ACC reference | ACC ours |")
    print("|---|---|---|---|---|---|")
    rows = []
    for seed in range(options.seeds):
        reference, acc_reference = run_reference(
            split, options.recipe, options.epochs, seed
        )
        ours, acc_ours = run_ours(split, options.recipe, options.epochs, seed)
        rows.append((reference, ours, reference / ours, acc_reference, acc_ours))
        print(
            f"| {seed} | {reference:.1f} s | {ours:.1f} s | {reference / ours:.2f} × "
            f"| {acc_reference:.3f} | {acc_ours:.3f} |",
            flush=True,
        )
    means = np.mean(rows, axis=0)
    print(
        f"| mean | {means[0]:.1f} s | {means[1]:.1f} s | {means[2]:.2f} × "
        f"| {means[3]:.3f} | {means[4]:.3f} |"
    )


if __name__ == "__main__":
    main()
