"""A whole training run beside the same run written the straightforward way.

    python benchmarks/training.py --data ../shared/data

pets_clip with the paper's settings: batch 100, lr 1e-3, γ 5, β 0.5, dropout 0.1,
200 epochs, released losses. The reference below is the usual PyTorch: a DataLoader over
a TensorDataset, modules with weight_norm, dense attention with the entmax package's
sort. Both are timed in turn in one process; quality is that of the batch protocol on
shuffled test samples. Needs: pip install -c constraints.txt entmax.
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
    def __init__(self, width: int, n_clusters: int) -> None:
        super().__init__()
        self.linear = weight_norm(nn.Linear(width, n_clusters))
        self.U = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * [n_clusters])))
        self.V = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * [n_clusters])))
        self.gate = nn.Sequential(
            nn.Linear(width, width // 2),
            nn.ReLU(),
            nn.Linear(width // 2, 1),
            nn.Sigmoid(),
        )
        self.dropout = nn.Dropout(0.1)
        self.bias = nn.Parameter(torch.zeros(n_clusters))

    def forward(self, h: Tensor) -> Tensor:
        z = self.linear(h)
        scores = (z @ self.U) @ (z @ self.V).T / z.shape[1] ** 0.5
        A = self.dropout(entmax15(scores * (1 - self.gate(h)), dim=1))
        return torch.softmax(A @ z + z + self.bias, dim=1)


def reference_loss(q: list[Tensor]) -> Tensor:
    labels = torch.stack(q).mean(dim=0).argmax(dim=1)
    pseudo = -sum(p.gather(1, labels[:, None]).mean() for p in q)
    means = [p.mean(dim=0) for p in q]
    diversity = sum((m * m.log()).sum() for m in means)
    alignment = -(q[1] * q[0].clamp(min=1e-8).log()).sum(dim=1).mean()
    return pseudo + 5.0 * diversity + 0.5 * alignment


def run_reference(split: Split, epochs: int, seed: int) -> tuple[float, float]:
    torch.manual_seed(seed)
    train = [torch.from_numpy(a.astype(np.float32)) for _, a in split.train.items()]
    test = [torch.from_numpy(a.astype(np.float32)) for _, a in split.test.items()]
    views = nn.ModuleList(ReferenceView(h.shape[1], split.n_clusters) for h in train)
    start = time.perf_counter()
    loader = DataLoader(TensorDataset(*train), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.Adam(views.parameters(), lr=1e-3)
    for _ in range(epochs):
        for batch in loader:
            q = [view(h) for view, h in zip(views, batch, strict=True)]
            loss = reference_loss(q)
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


def run_ours(split: Split, epochs: int, seed: int) -> tuple[float, float]:
    model = SAGL(
        split.n_clusters,
        recipe="released",
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
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    split = load(options.data, "pets_clip")
    print(f"threads: {options.threads}, epochs: {options.epochs}")
    print("| seed | reference | ours | ratio | ACC reference | ACC ours |")
    print("|---|---|---|---|---|---|")
    rows = []
    for seed in range(options.seeds):
        reference, acc_reference = run_reference(split, options.epochs, seed)
        ours, acc_ours = run_ours(split, options.epochs, seed)
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
