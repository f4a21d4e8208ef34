"""``sagl info``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sagl.cli.options import JSON, RUN, answer


def info(run: Path = RUN, as_json: bool = JSON) -> None:
    """Show what a run is: its views, settings, clusters and last record."""
    answer(describe(run), as_json, show)


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
        "size_choice": config.get("cluster_sizes"),
        "anchors": len(saved.anchors[0]),
        "n_clusters_found": int((sizes > 0).sum()),
        "cluster_sizes": sizes.tolist(),
        "mean_confidence": float(saved.confidence.mean()),
        "n_steps": saved.n_steps,
        "settings": config["settings"],
        "last_record": saved.history[-1] if saved.history else None,
    }


def show(facts: dict[str, Any]) -> None:
    """The same facts for people."""
    record = facts["last_record"]
    sizes = sorted(facts["cluster_sizes"])
    table = Table(show_header=False, title=f"run {facts['run']}")
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "samples": f"{facts['n_samples']:,}",
        "views": ", ".join(f"{v['name']} ({v['width']})" for v in facts["views"]),
        "clusters": f"{facts['n_clusters_found']} of {facts['n_clusters']} in use, "
        f"sizes {sizes[0]:,} to {sizes[-1]:,}, median {sizes[len(sizes) // 2]:,}",
        "mean confidence": f"{facts['mean_confidence']:.3f}",
        "anchors": f"{facts['anchors']:,} samples that new ones attend to",
        "recipe": facts["recipe"],
        "settings": ", ".join(
            f"{k}={v}" for k, v in facts["settings"].items() if k != "search"
        ),
        "files": ", ".join(sorted(p.name for p in Path(facts["run"]).iterdir())),
    }
    if record is not None:
        rows["training"] = f"{facts['n_steps']:,} steps, {record['epoch']:,} epochs"
        if not facts["settings"]["refine"]:
            moved = f"{record['changed']:.1%} of samples still moved at the end"
            rows["training"] += f"; {moved}"
        shares = zip(facts["views"], record["sparsity"], strict=True)
        kept = ", ".join(f"{view['name']} {share:.2%}" for view, share in shares)
        rows["graph"] = f"{kept} of all pairs kept"
    changed = _changed(facts["settings"].get("search", {}))
    if changed:
        rows["search"] = ", ".join(f"{k}={v}" for k, v in changed.items())
    if facts["view_weights"] is not None:
        rows["weights"] = ", ".join(
            f"{v['name']} {weight:.0%}"
            for v, weight in zip(facts["views"], facts["view_weights"], strict=True)
        )
    if facts["size_choice"] is not None:
        rows["clusters"] += f" ({facts['size_choice']})"
    if facts["cluster_count"] is not None:
        from sagl.search.count import ClusterCount

        rows["estimated"] = ClusterCount.from_dict(facts["cluster_count"]).in_words()
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def _changed(search: dict[str, Any]) -> dict[str, Any]:
    """Numbers of the search that are not those of today's default."""
    from sagl.search.config import SearchConfig

    default = SearchConfig().as_dict()
    return {k: v for k, v in search.items() if default.get(k) != v}
