"""Corrections from a file: their own form, or what a report's explorer exports.

* ``{"format": "sagl-corrections", …}``: see ``corrections``;
* names.json: names, and samples marked as wrong;
* a selection (.json), or a table (.csv) with the columns ``sample`` and ``cluster``:
  where a cluster is not the one that the run has, it is a label; ``wrong`` marks
  samples as wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sagl.clusters.corrections import FORMAT, VERSION
from sagl.clusters.names import read_names
from sagl.features.tables import read_columns
from sagl.model import Model
from sagl.schema import read_json

_NAMES = "sagl-names"


def read_corrections(path: Path, model: Model, run: str) -> dict[str, Any]:
    """The file's corrections, refused unless they are of the run of this checksum."""
    if path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        columns = read_columns(path, [None])
        if "sample" not in columns or "cluster" not in columns:
            raise ValueError(f"{path}: it needs the columns sample and cluster")
        rows = zip(*columns.values(), strict=True)
        return _of_table((dict(zip(columns, row, strict=True)) for row in rows), model)
    try:
        content = read_json(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text") from None
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: it must hold an object of corrections")
    kind, owner = content.get("format"), content.get("run")
    if owner is not None and owner != run:
        raise ValueError(
            f"{path}: these corrections belong to another run; numbers of clusters "
            "mean something else in every run"
        )
    if kind == _NAMES:
        names = read_names(path, run, model.settings.n_clusters)
        return {
            "names": {str(k): name for k, name in names.clusters.items()},
            "wrong": [{"row": k, "sample": name} for k, name in names.wrong.items()],
        }
    if kind is None and "samples" in content:
        samples = content["samples"]
        if not isinstance(samples, list) or not all(
            isinstance(each, dict) and {"sample", "cluster"} <= each.keys()
            for each in samples
        ):
            raise ValueError(f"{path}: samples must be a list, each with its cluster")
        return _of_table(samples, model)
    if kind != FORMAT or content.get("version") != VERSION:
        raise ValueError(
            f"{path}: its format is {kind!r}, version {content.get('version')!r}; "
            f"expected {FORMAT!r}, version {VERSION}"
        )
    return content


def _of_table(rows: Iterable[Mapping[str, Any]], model: Model) -> dict[str, Any]:
    """Labels where a cluster was changed, and samples marked as wrong."""
    numbers = {name: row for row, name in enumerate(model.ids or ())}
    labels: dict[str, Any] = {}
    wrong: list[str] = []
    for each in rows:
        sample, cluster = str(each["sample"]), str(each["cluster"] or "").strip()
        if str(each.get("wrong", "")).lower() in ("1", "true"):
            wrong.append(sample)
        numbered = sample.isdecimal() and len(sample) < 19
        row = numbers.get(sample, int(sample) if numbered else -1)
        known = 0 <= row < len(model.labels)
        if cluster and not (known and cluster == str(model.labels[row])):
            labels[sample] = cluster
    return {
        "labels": labels,
        "wrong": [sample for sample in wrong if sample not in labels],
    }
