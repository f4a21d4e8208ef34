"""What was run, with what, and what is missing: the plain facts of a report."""

from __future__ import annotations

import platform
from typing import Any

from sagl.report.build import RunData
from sagl.report.style import load
from sagl.report.thumbnails import Thumbnails


def lead(data: RunData) -> str:
    """The run in one sentence."""
    views = ", ".join(data.model.view_names_)
    seed = data.model.settings_.seed
    recipe = data.config["params"].get("recipe", "default")
    return (
        f"{len(data):,} samples seen through {views}; {data.n_clusters} clusters, "
        f"recipe {recipe}, seed {seed}."
    )


def tables(data: RunData) -> list[dict[str, Any]]:
    """What was run and with what, as tables of names and values."""
    config, model = data.config, data.model
    run = [
        ("directory", data.directory.name),
        ("samples", f"{len(data):,}"),
        ("steps", f"{model.n_steps_:,}"),
        ("made by", f"sagl {config.get('sagl', '?')}"),
        ("checksum", data.checksum[:16]),
    ]
    widths = zip(model.view_names_, model.view_widths_, strict=True)
    views = [(name, f"{width:,} columns") for name, width in widths]
    settings = [(k, _shown(v)) for k, v in config["settings"].items()]
    versions = [("python", platform.python_version())]
    for name in ("torch", "numpy", "scipy", "sklearn"):
        versions.append((name, str(load(name).__version__)))
    return [
        {"title": "Run", "rows": run},
        {"title": "Views", "rows": views},
        {"title": "Settings", "rows": settings},
        {"title": "This report was made with", "rows": versions},
    ]


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def notes(data: RunData, thumbnails: Thumbnails, shown: int) -> list[str]:
    """What is missing from the report, and why."""
    found = list(data.inputs.notes)
    if data.inputs.views is None:
        found.append(
            "Without the views (--store or --view) there is no graph per view, no "
            "t-SNE of the features and no comparison of the views."
        )
    if not data.graphs:
        found.append("There is no graph: samples have no neighbours to walk to.")
    if thumbnails.unreadable:
        found.append(f"{thumbnails.unreadable:,} pictures could not be read.")
    if shown < len(data):
        found.append(f"The explorer shows {shown:,} of {len(data):,} samples.")
    return found
