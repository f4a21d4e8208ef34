"""Batches on which LaFTer tunes: what the student sees, and what the teacher says.

The teacher is the classifier that was trained on texts. A student says what can be
learned beside the classifier (``parameters``) and what has been (``learned``).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sagl.baselines.features import State, unit_rows
from sagl.baselines.pictures import Pictures, as_tensor, distorted, plain_crop
from sagl.baselines.visual_prompts import PromptedEncoder

# About the length of CLIP's image features, which the paper's second stage takes as
# they are; at length one W would learn how frequent classes are before anything else.
_FEATURE_NORM = 10.0


class FeatureStudent:
    """Batches for tuning without images: features with the labels of the teacher."""

    def __init__(self, features: Tensor) -> None:
        self.features = _FEATURE_NORM * unit_rows(features)

    def parameters(self) -> list[nn.Parameter]:
        return []

    def learned(self) -> State:
        return {}

    def batch(self, rows: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        h = self.features[rows]
        return h, (h @ teacher.T).argmax(dim=1)


class PictureStudent:
    """Distorted pictures, with the labels that the teacher gives to the plain ones."""

    def __init__(self, encoder: PromptedEncoder, pictures: Pictures, seed: int) -> None:
        self.encoder = encoder
        self.pictures = pictures
        self._random = np.random.default_rng(seed)

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in self.encoder.parameters() if p.requires_grad]

    def learned(self) -> State:
        return self.encoder.learned()

    def batch(self, rows: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        """Features of distorted pictures, and the teacher's labels, without prompts."""
        size, device = self.encoder.size, self.encoder.prompts.device
        chosen = [self.pictures[i] for i in rows.tolist()]
        plain = as_tensor([plain_crop(picture, size) for picture in chosen])
        strong = as_tensor([distorted(p, size, self._random) for p in chosen])
        with torch.no_grad():
            seen = self.encoder(plain.to(device), prompted=False)
            labels = (seen @ teacher.T).argmax(dim=1)
        return self.encoder(strong.to(device)), labels
