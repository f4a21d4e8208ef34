"""The page: one HTML file that needs nothing else and asks nobody."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl._version import __version__
from sagl.report.explorer import payload
from sagl.report.inputs import Thumbnails, data_address, first_words
from sagl.report.run_data import Cluster, RunData
from sagl.report.saving import Drawing
from sagl.report.style import cluster_colours, load
from sagl.report.summary import (
    CHECKED,
    Concern,
    headline,
    lead,
    notes,
    percent,
    protocol,
    tables,
)

_HERE = Path(__file__).parent
_SCRIPTS = (
    *("dom", "payload", "camera", "points", "colours", "memory", "export"),
    *("overlay", "legend", "panel", "gestures", "search", "explorer", "page"),
)
_LINE = 160  # characters of a text in the list of a cluster's samples


def render(
    data: RunData,
    figures: Sequence[Drawing],
    concerns: Sequence[Concern],
    thumbnails: Thumbnails,
    rows: NDArray[np.int64],
) -> str:
    """The report as HTML. ``rows`` are the samples that the explorer shows."""
    jinja = load("jinja2")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = load("markupsafe").Markup  # what is ours and must not be escaped
    css = _static("report.css")
    script = "\n".join(_static(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{script}}})();\n'
    text: str = environment.get_template("report.html").render(
        page=_page(data, figures, concerns, thumbnails, rows),
        markup=markup,
        policy=_policy(css, script),
        css=markup(css),
        script=markup(script),
        payload=markup(payload(data, thumbnails, rows)),
    )
    # Half a character, as in file names that are not UTF-8, cannot be written.
    return text.encode("utf-8", "replace").decode("utf-8")


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded, and no script may run but ours."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            "style-src 'unsafe-inline'",  # for browsers that do not know the next two
            f"style-src-elem '{_digest(css)}'",
            "style-src-attr 'unsafe-inline'",  # inside the figures
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _page(
    data: RunData,
    figures: Sequence[Drawing],
    concerns: Sequence[Concern],
    thumbnails: Thumbnails,
    rows: NDArray[np.int64],
) -> dict[str, Any]:
    colours = cluster_colours(data.n_clusters)
    row_of = {int(row): place for place, row in enumerate(rows)}
    sections = [("explorer", "Explorer"), ("clusters", "Clusters")]
    sections += [("figures", "Figures")] * bool(figures) + [("run", "What was run")]
    some = (
        "" if len(rows) == len(data) else f" {len(rows):,} of {len(data):,} are drawn."
    )
    kind = "image" if thumbnails.pictures else data.inputs.kind
    return {
        "title": data.directory.resolve().name,
        "lead": lead(data),
        "sections": sections,
        "headline": headline(data),
        "protocol": protocol(data),
        "concerns": concerns,
        "checked": CHECKED,
        "explorer_lead": f"Each point is a sample. {data.layout.words}{some}",
        "clusters_lead": _clusters_lead(data),
        "kind": kind if thumbnails.pictures or kind == "text" else "ids",
        "pixelated": thumbnails.pixelated,
        "clusters": [
            _cluster(data, cluster, colours, thumbnails, row_of)
            for cluster in data.clusters
        ],
        "empty_clusters": ", ".join(map(str, data.empty)),
        "figures": figures,
        "tables": tables(data),
        "notes": notes(data, thumbnails, len(rows)),
        "footer": f"Made by sagl {__version__}. This page loads nothing and sends "
        "nothing; names and marks stay in your browser until you export them.",
    }


def _clusters_lead(data: RunData) -> str:
    words = (
        "Typical samples have the highest confidence"
        + (" and most attention from their cluster" if data.graphs else "")
        + "; doubtful ones have the lowest. The number is the confidence."
    )
    if data.mean_graph is not None:
        words += " Shares say how much of a cluster's graph weight goes to another."
    return words


def _cluster(
    data: RunData,
    cluster: Cluster,
    colours: Sequence[str],
    thumbnails: Thumbnails,
    row_of: dict[int, int],
) -> dict[str, Any]:
    names = data.inputs.names
    groups = [("Typical", cluster.typical), ("Doubtful", cluster.doubtful)]
    return {
        "number": cluster.number,
        "name": names.name_of(cluster.number),
        "colour": colours[cluster.number],
        "facts": f"{cluster.size:,} {'sample' if cluster.size == 1 else 'samples'} "
        f"({percent(cluster.size / len(data))}), mean confidence "
        f"{cluster.confidence:.3f}",
        "groups": [
            (title, [_example(data, int(row), thumbnails, row_of) for row in rows])
            for title, rows in groups
            if len(rows)
        ],
        "neighbours": [
            {
                "number": k,
                "name": names.name_of(k),
                "colour": colours[k],
                "share": percent(share),
            }
            for k, share in cluster.neighbours
        ],
    }


def _example(
    data: RunData, row: int, thumbnails: Thumbnails, row_of: dict[int, int]
) -> dict[str, Any]:
    """A sample in the list of its cluster; ``row`` is its place in the explorer."""
    text = name = data.inputs.ids[row]
    picture = thumbnails.pictures.get(row)
    if picture is None and data.inputs.kind == "text":
        text = first_words(" ".join(data.inputs.text(row).split()), _LINE) or name
    return {
        "row": row_of[row],
        "id": name,
        "text": text,
        "picture": "" if picture is None else data_address(picture),
        "confidence": f"{data.confidence[row]:.2f}",
    }
