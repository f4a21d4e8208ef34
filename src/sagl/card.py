"""The model card of a run: ``README.md``, which says what it is to whoever finds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sagl._version import __version__
from sagl.clusters.names import name_of
from sagl.model import Model
from sagl.storage import write_text

CARD = "README.md"
_MOST = 100  # clusters with a line of their own
_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|#"})

_HEAD = """---
library_name: sagl
tags: [clustering, multiview, sagl]
---

# {clusters:,} clusters of {samples:,} samples

Found without labels by sagl {version}{corrected}.

```python
from sagl import SAGL

model = SAGL.load(".")  # this directory
model.predict(views)
```

`views` holds an array per view, by name, with a row per sample: {views}. They are
features by the same models as in the fit. A sample gets the same cluster alone, in any
batch, in any order.
"""
_CLUSTERS = """
## The clusters

| no. | name | samples | confidence |
|---|---|---|---|
"""
_LAYERS = """
## From coarse to fine

*Stability* is the share of samples that keep their cluster when the search starts
elsewhere.

| clusters | stability |
|---|---|
"""
_LIMITS = """
## What to know before using it

- Numbers of clusters mean nothing by themselves. Names that were given later are in
  `names.json`.
- Every sample gets a cluster, also one that belongs to none: `model.outliers(views)`
  tells how unlike all others it is.
- `anchors.safetensors` holds features of training samples, `labels.csv` what they are
  called and their clusters. Look at both before you publish this directory.
"""


def write_card(directory: Path, model: Model) -> None:
    """Write it, unless there is one, which may be somebody's own."""
    if not (directory / CARD).exists():
        write_text(directory / CARD, card(model))


def card(model: Model) -> str:
    """What the model is, how to use it, what is in it, what to beware of."""
    views = zip(model.view_names, model.view_widths, strict=True)
    head = _HEAD.format(
        clusters=model.settings.n_clusters,
        samples=len(model.labels),
        version=__version__,
        corrected=_corrected(model),
        views=", ".join(f"{_plain(name)} ({width} columns)" for name, width in views),
    )
    return head + _clusters(model) + _layers(model) + _LIMITS


def _corrected(model: Model) -> str:
    if model.corrections is None:
        return ""
    said = model.corrections.in_words()
    return f", and then corrected by people, whose labels were used ({said})"


def _clusters(model: Model) -> str:
    C = model.settings.n_clusters
    sizes = np.bincount(model.labels, minlength=C)
    sums = np.bincount(model.labels, weights=model.confidence, minlength=C)
    held = np.flatnonzero(sizes).tolist()
    lines = [
        f"| {k} | {_plain(name_of(model.names, k))} | {sizes[k]:,} | "
        f"{sums[k] / sizes[k]:.3f} |"
        for k in held[:_MOST]
    ]
    if len(held) > _MOST:
        lines.append(f"| | and {len(held) - _MOST:,} more | | |")
    return _CLUSTERS + "\n".join(lines) + "\n"


def _layers(model: Model) -> str:
    if not model.layers:
        return ""
    lines = [f"| {x.n_clusters} | {x.stability:.3f} |" for x in model.layers]
    return _LAYERS + "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that is no markup, whoever wrote it."""
    return text.translate(_MARKUP)
