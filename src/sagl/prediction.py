"""A trained network asked about views: a block at a time, with anchors to attend to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.nn.inference import Answer, Predictor, anchor_features
from sagl.nn.network import Network
from sagl.views import Views


def anchors_from(
    views: Views, network: Network, n_anchors: int, seed: int
) -> list[Tensor]:
    """What new samples attend to: linear features of some samples, drawn at random."""
    rows = np.random.default_rng(seed).permutation(len(views))
    features = views.take(np.sort(rows[:n_anchors]))
    return anchor_features(network, [torch.from_numpy(h) for h in features])


def answers(predictor: Predictor, views: Views) -> Iterator[Answer]:
    """What the network says of each block of samples."""
    for block in views.blocks(predictor.block_rows):
        yield predictor.answer(
            [torch.from_numpy(h).to(predictor.device) for h in block]
        )


def most_likely(
    predictor: Predictor, views: Views
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster and confidence of each sample; never all probabilities at once."""
    labels, confidence = [], []
    for answer in answers(predictor, views):
        q = answer.q.cpu().numpy()
        labels.append(q.argmax(axis=1))
        confidence.append(q.max(axis=1))
    return np.concatenate(labels), np.concatenate(confidence)
