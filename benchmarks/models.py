"""Default fits that several tables are made of: fitted once, then loaded.

They are kept beside the tables, in runs/models, by set, seed and revision of the
algorithm, and are no part of the repository. With each are the partitions that its
search began with: fits that differ from the default in what comes later take them as
they are, which saves two fifths of their time.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from cache import TABLES
from data import Split
from sagl import SAGL
from sagl._version import REVISION
from sagl.search.config import SearchConfig
from sagl.search.journal import Journal
from sagl.storage import write_json

_STARTS = SearchConfig().starts + 2  # k-means, spectral, and that annealed


def default_model(name: str, split: Split, seed: int) -> tuple[SAGL, float]:
    """The default fitted on a set's training samples, and its processor seconds."""
    place = _place(name, seed)
    seconds = place.with_suffix(".json")
    if not seconds.exists():
        journal = Journal()
        start = time.process_time()
        with patch("sagl.pipeline.Journal", lambda: journal):
            model = SAGL(split.n_clusters, random_state=seed).fit(split.train)
        spent = time.process_time() - start
        model.save(place)
        np.save(
            place.with_suffix(".npy"), torch.stack(journal._partitions[:_STARTS]).int()
        )
        write_json(seconds, {"seconds": spent})
    return SAGL.load(place), json.loads(seconds.read_text())["seconds"]


def same_starts(name: str, split: Split, seed: int) -> Journal:
    """What a search takes for its own first partitions: those of the default fit."""
    default_model(name, split, seed)
    journal = Journal()
    starts = np.load(_place(name, seed).with_suffix(".npy"))
    journal._partitions = [torch.from_numpy(labels).long() for labels in starts]
    return journal


def _place(name: str, seed: int) -> Path:
    return TABLES / "models" / REVISION.replace(" ", "-") / f"{name}-{seed}"
