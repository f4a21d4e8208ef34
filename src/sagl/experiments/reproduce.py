"""A data set of the paper from its files to a comparison with the paper's settings.

First the features of both splits, then the runs; each step takes up what it finds done,
so the same call goes on after an interruption.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sagl.baselines.registry import Method, find_method
from sagl.checks import integer
from sagl.experiments.compare import Comparison
from sagl.experiments.presets import BACKBONES, Preset
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.manifest import Manifest, samples_checksum
from sagl.features.readers import open_samples
from sagl.features.split import Part, Source, find_source
from sagl.run import FEATURES
from sagl.storage import write_json

_EXTRACTED = "backbones.json"
_SPLITS = ("train", "test")

# SAGL as the paper has it and its ablations: these are trained by the preset.
BY_PRESET = ("sagl-paper", "sagl-w", "sagl-i", "sagl-b")
DEFAULT_METHODS = (*BY_PRESET, "sagl", "kmeans", "linear-probe")


@dataclass(frozen=True)
class Reproduction:
    """A preset, the comparison that was run with it, and what was changed.

    ``backbones`` are those that the features were extracted with, None where the
    features came from elsewhere; ``epochs`` is None where the preset's were trained.
    """

    preset: Preset
    comparison: Comparison
    backbones: tuple[str, ...] | None = None
    epochs: int | None = None

    def departures(self) -> list[str]:
        """What was done otherwise than in the paper, as far as it can be seen here."""
        preset, done = self.preset, self.comparison
        found = []
        sizes = f"{done.n_train:,} / {done.n_scored:,}"
        expected = f"{preset.n_train:,} / {preset.n_test:,}"
        if sizes != expected:
            found.append(f"{sizes} samples instead of {expected}")
        if done.n_clusters != preset.n_classes:
            found.append(f"{done.n_clusters} clusters instead of {preset.n_classes}")
        if self.epochs not in (None, preset.epochs):
            found.append(f"{self.epochs} epochs instead of {preset.epochs}")
        if self.backbones is None:
            views = ", ".join(done.source.train.names)
            found.append(
                f"features from files ({views}); the paper's are of {_PAPER_VIEWS}"
            )
        elif set(self.backbones) != set(BACKBONES):
            views = " and ".join(self.backbones)
            found.append(f"features of {views} instead of {_PAPER_VIEWS}")
        return found


_PAPER_VIEWS = " and ".join(BACKBONES)


def preset_methods(
    preset: Preset, names: Sequence[str], epochs: int | None = None
) -> list[Method]:
    """Methods by name; SAGL as the paper has it and its ablations with the preset.

    All others are run at their own defaults. ``epochs`` shortens what the preset
    trains, and the titles say so.
    """
    if epochs is not None:
        integer("epochs", epochs, 1)
    methods = []
    for name in names:
        method = find_method(name)
        if name in BY_PRESET:
            title = method.title
            if epochs not in (None, preset.epochs):
                title += f", {epochs} epochs"
            params = {**method.params, **preset.settings(epochs)}
            method = replace(method, title=title, params=params)
        methods.append(method)
    return methods


def extract_features(
    preset: Preset,
    root: Path,
    backbones: Sequence[str],
    out: Path,
    **options: Any,
) -> Source:
    """Features of the paper's two splits, in ``out/features/train`` and ``…/test``.

    Both splits are looked at before the work begins. Views that are complete are not
    extracted again, and their models not loaded. ``options`` are those of
    ``extract_source``.
    """
    named = parse_backbones(backbones)
    samples = f"{preset.name}:{root}"
    checksums = {
        split: samples_checksum(sorted(open_samples(samples, split=split).ids))
        for split in _SPLITS
    }
    features = out / FEATURES
    parts = {}
    for split, checksum in checksums.items():
        store = features / split
        if not _is_complete(store, named, checksum):
            extract_source(
                samples, backbones, store, reader={"split": split}, **options
            )
            write_json(features / _EXTRACTED, {**_extracted(features), **named})
        parts[split] = Part(tuple(named), store=str(store))
    return Source(preset.title, parts["train"], parts["test"])


def given_features(
    preset: Preset, directory: Path, views: Sequence[str] | None = None
) -> Source:
    """Features that are there already: a directory with ``train`` and ``test``."""
    source = find_source(directory, views)
    if source.test is None:
        raise ValueError(
            f"{directory}: there is no test part; {preset.title} is fitted on "
            "train/ and scored on test/"
        )
    return replace(source, name=preset.title)


def _is_complete(store: Path, named: dict[str, str], checksum: str) -> bool:
    """Whether a store has all these views, of these very samples and models."""
    views, known = Manifest.read_or_new(store).views, _extracted(store.parent)
    return all(
        known.get(name) == backbone
        and name in views
        and views[name].plan.samples_sha256 == checksum
        for name, backbone in named.items()
    )


def _extracted(features: Path) -> dict[str, str]:
    """Which model each view is of, as it was asked for."""
    path = features / _EXTRACTED
    if not path.exists():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8")))
