"""The paper's eight data sets: its settings, its figures, and both run again.

``sagl reproduce``: first the features of both splits, then the runs; each step takes up
what it finds done, so the same call goes on after an interruption. The table has the
paper's figures beside the measured ones, and says by which protocol each came about.

Of the settings (``presets.csv``) the paper's text gives the learning rates, 600 epochs
and the ranges of all else; which batch size, γ, β and dropout belong to which data set
only its released code says. A note stands where the two differ. Sizes and classes are
those of the readers, which make the paper's splits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.baselines.registry import Method, find_method
from sagl.checks import integer
from sagl.experiments.study import Study
from sagl.experiments.table import (
    PUBLISHED,
    Row,
    lines_of,
    plain,
    published_figures,
    with_published,
)
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.manifest import Manifest, samples_checksum
from sagl.features.readers import DATASETS, open_samples
from sagl.features.samples import reading
from sagl.features.split import Part, Source, find_source
from sagl.run import FEATURES
from sagl.schema import check, read_json
from sagl.storage import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    *("BACKBONES", "PRESETS", "Preset", "Reproduction"),
    *("extract_features", "find_preset", "given_features", "preset_methods"),
]

# The paper's two backbones, as `sagl backbones` calls them.
BACKBONES = ("dinov3-l", "siglip2-l-384")
# SAGL as the paper has it and its ablations: these are trained by the preset.
BY_PRESET = ("sagl-paper", "sagl-w", "sagl-i", "sagl-b")
DEFAULT_METHODS = (*BY_PRESET, "sagl", "kmeans", "linear-probe")
_SETTINGS = ("learning_rate", "batch_size", "gamma", "beta", "dropout")
_EXTRACTED = "backbones.json"


@dataclass(frozen=True)
class Preset:
    """One data set of the paper and the settings it is trained with there."""

    name: str  # as the user writes it; the reader has the same name
    title: str  # as the paper writes it
    download: str  # the official name of the data and the files to get
    splits: str  # what is fitted / what is scored
    learning_rate: float
    batch_size: int
    gamma: float
    beta: float
    dropout: float
    n_train: int
    n_test: int
    n_classes: int
    epochs: int = 600
    note: str = ""  # where the paper and its released code differ

    def settings(self, epochs: int | None = None) -> dict[str, Any]:
        """Parameters for ``SAGL``; ``epochs`` shortens the training."""
        own = {name: getattr(self, name) for name in _SETTINGS}
        return {"recipe": "paper", **own, "epochs": epochs or self.epochs}


def _preset(line: Mapping[str, str]) -> Preset:
    data = DATASETS[line["name"]]
    sizes = {name: getattr(data, name) for name in ("n_train", "n_test", "n_classes")}
    return Preset(**{**line, **{n: json.loads(line[n]) for n in _SETTINGS}, **sizes})


PRESETS = {line["name"]: _preset(line) for line in lines_of("presets.csv")}


def find_preset(name: str) -> Preset:
    """The preset of a data set, however its name is written.

    >>> find_preset("ImageNet-1K").batch_size
    10000
    """
    for preset in PRESETS.values():
        if plain(name) in (plain(preset.name), plain(preset.title)):
            return preset
    raise ValueError(
        f"no data set {name!r} in the paper; there are {', '.join(PRESETS)}"
    )


class Reproduction(Study):
    """Methods on a data set of the paper, beside the figures it published.

    ``methods`` are as ``preset_methods`` makes them, ``epochs`` those of the methods
    that the preset trains, if they are not the preset's. ``backbones`` are those that
    the features were extracted with; None if they are from elsewhere.
    """

    command = "reproduce"
    needs_labels = True
    columns = (
        *("ACC", "published", "NMI", "published NMI", "ARI", "published ARI"),
        *("worst ACC", "clusters", "seconds", "peak MiB", ""),
    )
    renamed = dict.fromkeys(("published", "published NMI", "published ARI"), "paper")

    def __init__(
        self,
        preset: Preset,
        source: Source,
        methods: Sequence[Method],
        out: Path,
        *,
        backbones: Sequence[str] | None = None,
        epochs: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source, methods, out, **options)
        self.preset = preset
        self.backbones = backbones
        self.epochs = epochs or preset.epochs
        self.published = published_figures(preset.title)

    def rows(self) -> list[Row]:
        """Those of the methods, and after them what the paper has and was not run."""
        return with_published(super().rows(), self.preset.title, self.published)

    def sentences(self) -> list[str]:
        """Protocols, what was done otherwise, what is disputed."""
        departures = "; ".join(self.departures())
        return [
            *(f"{name}: {protocol}" for name, protocol in self.protocols().items()),
            f"otherwise than in the paper: {departures}"
            if departures
            else "data, features and epochs: the paper's",
            *([f"settings: {self.preset.note}"] if self.preset.note else []),
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            **super().as_json(),
            "preset": asdict(self.preset),
            "backbones": self.backbones,
            "epochs": self.epochs,
            "published": {
                name: {m: figures.get(m) for m in PUBLISHED}
                for name, figures in self.published.items()
            },
            "protocols": self.protocols(),
            "departures": self.departures(),
        }

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_accuracy, draw_training_times

        # Titles short enough for a figure, whose own title says how long was trained.
        measured = [
            replace(row, title=find_method(row.name).title)
            for row in self.rows()
            if row.runs
        ]
        if not measured:
            return {}
        title = self.preset.title
        if self.epochs != self.preset.epochs:
            title += f", {self.epochs} of {self.preset.epochs} epochs"
        return {
            "accuracy": draw_accuracy(measured, data=title, published_as="published"),
            "training_times": draw_training_times({title: measured}),
        }

    def protocols(self) -> dict[str, str]:
        """How the figures of each column came about, in words."""
        names = {method.name for method in self.methods}
        spread = "one seed, so that nothing is known of the spread"
        if self.seeds > 1:
            spread = f"mean ± standard deviation over seeds 0 to {self.seeds - 1}"
        measured = (
            "inductive. Fitted on the training part without labels; each test sample "
            "is predicted alone, so that neither company nor order matters; "
            f"{spread}. Labels score and choose nothing: no setting, no checkpoint, no "
            "seed."
        )
        if names & set(BY_PRESET):
            measured += (
                " Rows of the paper's SAGL and its ablations take the settings that "
                "the paper found by labels; all others run at their own defaults."
            )
        protocols = {
            "measured": measured,
            "paper": (
                "as published: one figure, the best after tuning. The released code "
                "builds the graph of test samples inside test batches that are not "
                "shuffled; the files are sorted by class, so a sample's batch mates "
                "are mostly of its own class and labels leak through the order. Its "
                "search scores 480 settings × 31 checkpoints on the test labels and "
                "reports the best."
            ),
        }
        if "linear-probe" in names:
            protocols["linear probe"] = (
                "with labels. Logistic regression on all views side by side, fitted "
                "with the labels of the training part; the paper's is on one backbone, "
                "and the better of its two is shown."
            )
        return protocols

    def departures(self) -> list[str]:
        """What was done otherwise than in the paper, as far as it can be seen here."""
        preset, views = self.preset, f"of {' and '.join(BACKBONES)}"
        used = views
        if self.backbones is None:
            used = f"from files ({', '.join(self.source.train.names)})"
        elif set(self.backbones) != set(BACKBONES):
            used = f"of {' and '.join(self.backbones)}"
        done = {
            "{} samples instead of {}": (
                f"{self.n_train:,} / {self.n_scored:,}",
                f"{preset.n_train:,} / {preset.n_test:,}",
            ),
            "{} clusters instead of {}": (self.n_clusters, preset.n_classes),
            "{} epochs instead of {}": (self.epochs, preset.epochs),
            "features {} instead of the paper's, {}": (used, views),
        }
        return [text.format(*two) for text, two in done.items() if two[0] != two[1]]


def preset_methods(
    preset: Preset, names: Sequence[str], epochs: int | None = None
) -> list[Method]:
    """Methods by name; SAGL as the paper has it and its ablations with the preset.

    All others are run at their own defaults. ``epochs`` shortens what the preset
    trains, and the titles say so.
    """
    if epochs is not None:
        integer("epochs", epochs, 1)
    shorter = "" if epochs in (None, preset.epochs) else f", {epochs} epochs"
    return [
        replace(
            method,
            title=method.title + shorter,
            params={**method.params, **preset.settings(epochs)},
        )
        if method.name in BY_PRESET
        else method
        for method in map(find_method, names)
    ]


def extract_features(
    preset: Preset, root: Path, backbones: Sequence[str], out: Path, **options: Any
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
        for split in ("train", "test")
    }
    record = out / FEATURES / _EXTRACTED  # which model each view is of
    parts = {}
    for split, checksum in checksums.items():
        store = out / FEATURES / split
        known = _extracted(record)
        views = Manifest.read(store).views
        complete = all(
            known.get(name) == backbone
            and name in views
            and views[name].plan.samples_sha256 == checksum
            for name, backbone in named.items()
        )
        if not complete:
            reader = {"split": split}
            extract_source(samples, backbones, store, reader=reader, **options)
            write_json(record, {**known, **named})
        parts[split] = Part(tuple(named), store=str(store))
    return Source(preset.title, parts["train"], parts["test"])


def _extracted(record: Path) -> dict[str, str]:
    """Which model each view is of, as it was written down."""
    if not record.exists():
        return {}
    with reading(record, "remove it to extract again"):
        known: dict[str, str] = read_json(record)
        check(dict[str, str], known)
    return known


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
