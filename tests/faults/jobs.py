"""The commands that faults are done to, small, and what each of them ends in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.cli.test_extract import BACKBONES
from tests.conftest import clustered_views
from tests.features.toy_extraction import tree

# What differs from run to run of a study, and says nothing about what was found.
_TIMES = {"seconds", "peak_mib", "curve", "mean_seconds", "checksum", "digest"}
_LOCK = ".lock"


@dataclass(frozen=True)
class Job:
    """A command line, and the directory or file that it makes."""

    name: str
    words: tuple[str, ...]
    out: str
    grows: tuple[str, ...] = ()  # files that are whole before they are complete
    needs: str = ""  # what must be there before, made by the job of this name
    content: Callable[[Path], dict[str, Any]] = field(default=tree)

    def place(self, folder: Path) -> Path:
        """The directory that it writes to."""
        return folder / Path(self.out).parts[0]

    def made(self, folder: Path) -> dict[str, Any]:
        """Everything that the command has made so far, by name."""
        out = folder / self.out
        found = {out.name: out.read_bytes()} if out.is_file() else self.content(out)
        return {name: v for name, v in found.items() if Path(name).name != _LOCK}


def _of_study(out: Path) -> dict[str, Any]:
    """Results without times; of tables and figures, which show times, the names.

    A run that failed, as when it is interrupted, has no result: it is done again.
    """
    found: dict[str, Any] = {}
    for name, content in tree(out).items():
        found[name] = name
        if name.startswith("runs/") and name.endswith(".json"):
            found[name] = _timeless(json.loads(content))
            if "error" in found[name]:
                del found[name]
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in _TIMES}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


_VIEWS = ("--view", "wide.npy", "--view", "narrow.npy")
_FIT = ("fit", *_VIEWS, "--clusters", "3", "--out", "run", "--quiet")
_TEXTS = (
    *("--backbone", "short=toy_models:lengths#text"),
    *("--backbone", "long=toy_models:letters#text"),
)
_EXTRACT = ("extract", "texts.txt", *_TEXTS, "--out", "store", "--quiet")
_GROWS = ("manifest.json", "skipped.csv")
_COMPARE = ("compare", *_VIEWS, "--labels", "labels.npy", "--seeds", "2", "--quiet")
JOBS = {
    job.name: job
    for job in (
        Job("extract", _EXTRACT, "store", _GROWS),
        Job(
            "extract with workers",
            (
                *("extract", "photos", "--backbone", "toy_models:colours#image"),
                *("--workers", "1", "--batch-size", "4", "--out", "store", "--quiet"),
            ),
            "store",
            _GROWS,
        ),
        Job("training", (*_FIT, "--recipe", "network", "--epochs", "40"), "run"),
        Job(
            "restarts",
            (*_FIT, "--recipe", "paper", "--epochs", "20", "--restarts", "3"),
            "run",
        ),
        Job("search", (*_FIT, "--steps", "20"), "run"),
        Job(
            "fit of texts",
            (
                *("fit", "texts.txt", *_TEXTS, "--clusters", "2", "--steps", "5"),
                *("--out", "run", "--quiet"),
            ),
            "run",
            tuple(f"features/{name}" for name in _GROWS),
        ),
        Job(
            "compare",
            (
                *(*_COMPARE, "--methods", "kmeans,linear-probe", "--looks", "0"),
                *("--out", "study"),
            ),
            "study",
            content=_of_study,
        ),
        Job(
            "sweep",
            (
                *("sweep", *_VIEWS, "--clusters", "3", "--grid", "steps=5,10"),
                *("--seeds", "1", "--jobs", "2", "--out", "study", "--quiet"),
            ),
            "study",
            content=_of_study,
        ),
        Job(
            "report",
            (
                "report",
                "run",
                *_VIEWS,
                "--labels",
                "labels.npy",
                "--no-tsne",
                "--quiet",
            ),
            "run/report.html",
            needs="search",
        ),
    )
}
_LETTERS = """
def letters(texts):
    return np.array([[t.count(c) for c in "xo eaz"] for t in texts], dtype=float)
"""


def write_inputs(folder: Path) -> None:
    """Features, labels, texts, pictures and backbones for all jobs."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    views, labels = clustered_views(90, 3, spread=1.0)
    for name, array in views.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "labels.npy", labels)
    (folder / "toy_models.py").write_text(BACKBONES + _LETTERS)
    texts = [f"{'x' * (i % 7)} o {'a e z'[i % 4 :]} {i}" for i in range(70)]
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(40):
        pixels = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{i:02d}.png")


def copy_inputs(inputs: Path, folder: Path, job: Job) -> Path:
    """A folder of its own for a job, with what it needs and nothing that it makes."""
    shutil.copytree(inputs, folder)
    for path in folder.glob(".*"):
        path.unlink()
    if job.needs:
        needed = JOBS[job.needs]
        shutil.copytree(inputs.parent / needed.name / needed.out, folder / needed.out)
    return folder
