"""Methods side by side, and data sets of the paper from their files to its table.

``sagl reproduce``: first the features of both splits, then the runs; each step takes up
what it finds done, so the same call goes on after an interruption. The table has the
paper's figures beside the measured ones, and says by which protocol each came about.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.baselines.registry import METHODS, Method, find_method
from sagl.checks import integer
from sagl.experiments.paper import BACKBONES, Preset, Published, published_figures
from sagl.experiments.study import Study
from sagl.experiments.table import (
    COLUMNS,
    NOT_RUN,
    Row,
    cells,
    markdown_table,
    record,
)
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.manifest import Manifest, samples_checksum
from sagl.features.readers import open_samples
from sagl.features.split import Part, Source, find_source
from sagl.run import FEATURES
from sagl.storage import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Comparison",
    "Reproduction",
    "extract_features",
    "given_features",
    "preset_methods",
]

_EXTRACTED = "backbones.json"
_SPLITS = ("train", "test")
# SAGL as the paper has it and its ablations: these are trained by the preset.
BY_PRESET = ("sagl-paper", "sagl-w", "sagl-i", "sagl-b")
DEFAULT_METHODS = (*BY_PRESET, "sagl", "kmeans", "linear-probe")
_PAPER_VIEWS = " and ".join(BACKBONES)
_MEASURES = ("acc", "nmi", "ari")  # that the paper has figures of
_COSTS = ("clusters", "seconds", "peak MiB")
HEAD = (
    "method",
    *(text for m in _MEASURES for text in (m.upper(), "paper")),
    *("worst ACC", *_COSTS, ""),
)


class Comparison(Study):
    """Every method beside the others, and beside the paper's figures."""

    command = "compare"
    needs = "labels"

    def rows(self) -> list[Row]:
        """Those of the methods, and methods of the paper that cannot be run."""
        figures = published_figures(self.source.name)
        rows = super().rows() + [
            Row(name, figure.title, False, 0, published_acc=figure.acc, note=NOT_RUN)
            for name, figure in figures.items()
            if figure.only_published
        ]
        return sorted(rows, key=lambda row: row.supervised)

    def markdown(self) -> str:
        return markdown_table(COLUMNS, cells(self.rows()))

    def records(self) -> list[dict[str, Any]]:
        return [record(row) for row in self.rows()]


class Reproduction(Comparison):
    """Methods on a data set of the paper, beside the figures it published.

    Parameters
    ----------
    preset : Preset
    source : Source
    methods : sequence of Method
        As ``preset_methods`` makes them.
    out : Path
    backbones : sequence of str, optional
        Those that the features were extracted with; None if they are from elsewhere.
    epochs : int, optional
        Those of the methods that the preset trains, if they are not the preset's.
    options
        Of ``Study``.
    """

    command = "reproduce"

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
        self.epochs = epochs
        self.published = published_figures(preset.title)

    def rows(self) -> list[Row]:
        """Rows of the comparison, and after them what the paper has and was not run."""
        rows = super().rows()
        there = {row.name for row in rows}
        for name, figure in self.published.items():
            if name in METHODS and name not in there:
                method = METHODS[name]
                row = Row(name, method.title, method.supervised, 0, note=NOT_RUN)
                rows.append(replace(row, published_acc=figure.acc))
        return sorted(rows, key=lambda row: (row.supervised, not row.mean))

    def table(
        self, bold: tuple[str, str] = ("**", "**")
    ) -> tuple[list[str], list[list[str]], int]:
        """Each measured score, the paper's beside it, and the costs."""
        lines = []
        rows = self.rows()
        for row, line in zip(rows, cells(rows, bold), strict=True):
            texts = dict(zip(COLUMNS, line, strict=True))
            scores = [
                text
                for m in _MEASURES
                for text in (texts[m.upper()], _paper(self.published.get(row.name), m))
            ]
            worst = "" if row.worst_acc is None else f"{row.worst_acc:.3f}"
            costs = [texts[name] for name in _COSTS]
            lines.append([texts["method"], *scores, worst, *costs, row.note])
        return list(HEAD), lines, 1

    def heading(self) -> str:
        return (
            f"{self.preset.title}: {self.n_clusters} clusters, {self.n_train:,} "
            f"samples fitted, {self.n_scored:,} scored"
        )

    def sentences(self) -> list[str]:
        """Protocols, what was done otherwise, what is disputed."""
        lines = [f"{name}: {said}" for name, said in self.protocols().items()]
        departures = self.departures()
        lines.append(
            f"otherwise than in the paper: {'; '.join(departures)}"
            if departures
            else "data, features and epochs: the paper's"
        )
        if self.preset.note:
            lines.append(f"settings: {self.preset.note}")
        return lines

    def markdown(self) -> str:
        columns, lines, _ = self.table()
        said = "".join(f"- {line}\n" for line in self.sentences())
        return (
            f"# {self.preset.title}\n\n{self.n_clusters} clusters; "
            f"{self.n_train:,} samples fitted, {self.n_scored:,} scored.\n\n"
            f"{markdown_table(columns, lines)}\n{said}"
        )

    def records(self) -> list[dict[str, Any]]:
        """With the paper's NMI and ARI, too."""
        records = super().records()
        for line in records:
            figure = self.published.get(line["name"])
            for m in ("nmi", "ari"):
                line[f"published_{m}"] = figure and getattr(figure, m)
        return records

    def as_json(self) -> dict[str, Any]:
        return {
            **super().as_json(),
            "preset": self.preset.as_dict(),
            "backbones": self.backbones,
            "epochs": self.epochs or self.preset.epochs,
            "published": {
                name: {m: getattr(figure, m) for m in _MEASURES}
                for name, figure in self.published.items()
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
            if row.mean
        ]
        if not measured:
            return {}
        title = self.preset.title
        if self.epochs not in (None, self.preset.epochs):
            title += f", {self.epochs} of {self.preset.epochs} epochs"
        return {
            "accuracy": draw_accuracy(measured, data=title, published_as="published"),
            "training_times": draw_training_times({title: measured}),
        }

    def protocols(self) -> dict[str, str]:
        """How the figures of each column came about, in words."""
        last = max((task.seed for task in self.tasks), default=0)
        names = {method.name for method in self.methods}
        spread = "one seed, so that nothing is known of the spread"
        if last:
            spread = f"mean ± standard deviation over seeds 0 to {last}"
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
        preset = self.preset
        departures = []
        sizes = f"{self.n_train:,} / {self.n_scored:,}"
        expected = f"{preset.n_train:,} / {preset.n_test:,}"
        if sizes != expected:
            departures.append(f"{sizes} samples instead of {expected}")
        if self.n_clusters != preset.n_classes:
            departures.append(
                f"{self.n_clusters} clusters instead of {preset.n_classes}"
            )
        if self.epochs not in (None, preset.epochs):
            departures.append(f"{self.epochs} epochs instead of {preset.epochs}")
        if self.backbones is None:
            views = ", ".join(self.source.train.names)
            departures.append(
                f"features from files ({views}); the paper's are of {_PAPER_VIEWS}"
            )
        elif set(self.backbones) != set(BACKBONES):
            views = " and ".join(self.backbones)
            departures.append(f"features of {views} instead of {_PAPER_VIEWS}")
        return departures


def _paper(figure: Published | None, measure: str) -> str:
    value = None if figure is None else getattr(figure, measure)
    return "" if value is None else f"{value:.3f}"


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
