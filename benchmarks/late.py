"""Queries, keys and values as attention sees them early and late in training.

Late ones come from a model that was really trained, without labels, on clustered
features: C Gaussian clusters in 256 dimensions, two noisy views, the default recipe.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sagl import SAGL
from sagl.nn.network import Linear

_WIDTH = 256


class Phase(NamedTuple):
    queries: Tensor  # (n, C)
    keys: Tensor
    values: Tensor


def phases(n: int, C: int, cache: Path) -> dict[str, Phase]:
    """The first view's attention inputs at the first step and after training."""
    file = cache / f"late-{n}-{C}.pt.npz"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        arrays = {
            f"{phase}_{name}": tensor.numpy()
            for phase, linear in _train(n, C).items()
            for name, tensor in zip(Phase._fields, linear, strict=True)
        }
        np.savez(file, **arrays)
    data = np.load(file)
    return {
        phase: Phase(*(torch.from_numpy(data[f"{phase}_{f}"]) for f in Phase._fields))
        for phase in ("early", "late")
    }


def clustered(n: int, C: int, seed: int = 0) -> list[np.ndarray]:
    """Two views of n samples in C clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(C, size=n)
    return [
        (
            rng.normal(size=(C, _WIDTH))[labels] + 0.7 * rng.normal(size=(n, _WIDTH))
        ).astype(np.float32)
        for _ in range(2)
    ]


def _train(n: int, C: int) -> dict[str, Phase]:
    views = clustered(max(n, 6 * C), C)
    steps = 600 if C < 200 else 300
    # The network as its training leaves it: no refinement, features only centred.
    bare = {"random_state": 0, "normalize": "center", "refine": False}
    late = SAGL(C, steps=steps, batch_size=min(6 * C, 2500), **bare).fit(views)
    early = SAGL(C, steps=1, learning_rate=1e-12, **bare).fit(views)
    return {
        "early": _phase(early, views, n),
        "late": _phase(late, views, n),
    }


@torch.no_grad()
def _phase(model: SAGL, views: list[np.ndarray], n: int) -> Phase:
    view = model.network_.view_networks[0]
    linear: Linear = view.linear(
        view.encoder.standardize(torch.from_numpy(views[0][:n]))
    )
    return Phase(linear.queries, linear.keys, linear.z)
