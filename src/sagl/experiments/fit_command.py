"""The command line and the Python call that use given settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from sagl.features.split import Part

# Parameters of SAGL as ``sagl fit`` calls them. A test runs what is made here.
_OPTIONS = {
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("recipe", "epochs", "steps", "batch_size", "learning_rate", "gamma"),
            *("beta", "dropout", "alpha", "graph", "gate", "cluster_sizes"),
        )
    },
    "n_restarts": "--restarts",
    "n_anchors": "--anchors",
}


def fit_command(part: Part, n_clusters: int, params: Mapping[str, Any]) -> str | None:
    """``sagl fit`` with these views and settings, or None where it has no option.

    >>> part = Part(("clip=clip.npy", "dino=dino.npy"))
    >>> fit_command(part, 10, {"gamma": 20.0, "refine": False})
    'sagl fit --view clip=clip.npy --view dino=dino.npy --clusters 10 --gamma 20.0 \
--no-refine --out RUN'
    """
    words = ["sagl", "fit"]
    if part.store is not None:
        words += [part.store, "--views", ",".join(part.views)]
    else:
        for view in part.views:
            words += ["--view", view]
    words += ["--clusters", str(n_clusters)]
    for name, value in params.items():
        if value is None or value == "auto":
            continue  # what `sagl fit` takes anyway
        if name == "refine":
            words.append("--refine" if value else "--no-refine")
        elif name in _OPTIONS:
            words += [_OPTIONS[name], str(value)]
        else:
            return None
    return shlex.join([*words, "--out", "RUN"])


def python_call(n_clusters: int, params: Mapping[str, Any]) -> str:
    """The estimator with these settings.

    >>> python_call(10, {"gamma": 20.0, "gate": "none"})
    "SAGL(n_clusters=10, gamma=20.0, gate='none')"
    """
    given = "".join(f", {name}={value!r}" for name, value in params.items())
    return f"SAGL(n_clusters={n_clusters}{given})"
