"""``sagl info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sagl.cli.options import RUN, as_text, takes

if TYPE_CHECKING:
    from sagl.model import Model


def files_of(run: Path) -> list[str]:
    """What belongs to the run; other files may lie beside it."""
    from sagl.run import CONFIG, FEATURES, GRAPH, PARTS, SOURCE

    later = ("report.html", "names.json", "README.md")
    known = {CONFIG, *PARTS, GRAPH, FEATURES, SOURCE, *later}
    return sorted(path.name for path in run.iterdir() if path.name in known)


def describe(run: Path) -> dict[str, Any]:
    """The facts about a run that both forms of output show."""
    import numpy as np

    from sagl.run import read_config, read_run

    _, saved = read_run(run)
    config = read_config(run)
    sizes = np.bincount(saved.labels, minlength=saved.settings.n_clusters)
    return {
        "run": str(run),
        "sagl": config["sagl"],
        "recipe": config["params"]["recipe"],
        "views": config["views"],
        "n_samples": config["n_samples"],
        "n_clusters": saved.settings.n_clusters,
        "cluster_count": config.get("cluster_count"),
        "score": config.get("score"),
        "view_weights": config.get("view_weights"),
        "missing": config.get("missing"),
        "size_choice": config.get("cluster_sizes"),
        "anchors": len(saved.anchors[0]),
        "n_clusters_found": int((sizes > 0).sum()),
        "cluster_sizes": sizes.tolist(),
        "names": {str(k): name for k, name in sorted(saved.names.items())},
        "corrections": _corrections(saved),
        "stream": None if saved.stream is None else saved.stream._asdict(),
        "mean_confidence": float(saved.confidence.mean()),
        "n_steps": saved.n_steps,
        "settings": config["settings"],
        "last_record": saved.history[-1] if saved.history else None,
    }


def _corrections(saved: Model) -> dict[str, Any] | None:
    """What people said of the run's samples, and the same in words."""
    if saved.corrections is None:
        return None
    kept = saved.corrections._asdict()
    del kept["digests"]
    return {"text": saved.corrections.in_words(), **kept}


def show(facts: dict[str, Any]) -> None:
    """The same facts for people."""
    from sagl.search.config import SearchConfig
    from sagl.search.count import ClusterCount

    record, sizes = facts["last_record"], sorted(facts["cluster_sizes"])
    names = [view["name"] for view in facts["views"]]
    settings = dict(facts["settings"])
    default = SearchConfig().as_dict()
    search = settings.pop("search", {}).items()
    found = (
        f"{facts['n_clusters_found']} of {facts['n_clusters']} in use, sizes "
        f"{sizes[0]:,} to {sizes[-1]:,}, median {sizes[len(sizes) // 2]:,}"
    )
    if facts["size_choice"] is not None:
        found += f" ({facts['size_choice']})"
    rows = {
        "samples": f"{facts['n_samples']:,}",
        "views": ", ".join(f"{v['name']} ({v['width']})" for v in facts["views"]),
        "clusters": found,
        "mean confidence": f"{facts['mean_confidence']:.3f}",
        "anchors": f"{facts['anchors']:,} samples that new ones attend to",
        "recipe": facts["recipe"],
        "settings": ", ".join(f"{k}={v}" for k, v in settings.items()),
        # Numbers of the search that are not those of today's default.
        "search": ", ".join(f"{k}={v}" for k, v in search if default.get(k) != v),
        "files": ", ".join(files_of(Path(facts["run"]))),
    }
    if record is not None:
        rows["training"] = f"{facts['n_steps']:,} steps, {record['epoch']:,} epochs"
        if not settings["refine"]:
            moved = f"{record['changed']:.1%} of samples still moved at the end"
            rows["training"] += f"; {moved}"
        rows["graph"] = f"{_each(names, record['sparsity'], '.2%')} of all pairs kept"
    if facts["view_weights"] is not None:
        rows["weights"] = _each(names, facts["view_weights"], ".0%")
    if facts["missing"] is not None:
        rows["missing"] = _each(names, facts["missing"], ",") + " samples"
    if facts["names"]:
        rows["names"] = ", ".join(facts["names"].values())
    if facts["corrections"] is not None:
        rows["corrected"] = facts["corrections"]["text"]
    if facts["stream"] is not None:
        seen, updates = facts["stream"]["seen"], facts["stream"]["updates"]
        rows["updated"] = f"{updates:,} times; {seen:,} samples seen in all"
    if facts["cluster_count"] is not None:
        rows["estimated"] = ClusterCount.from_dict(facts["cluster_count"]).in_words()
    table = Table(show_header=False, title=as_text(f"run {facts['run']}"))
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows.items():
        if value:
            table.add_row(name, as_text(value))
    Console().print(table)


def _each(names: list[str], values: list[float], form: str) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value:{form}}" for name, value in pairs)


@takes(show=show)
def info(run: Path = RUN) -> dict[str, Any]:
    """Show what a run is: its views, settings, clusters and last record.

    Example: sagl info run
    """
    return describe(run)
