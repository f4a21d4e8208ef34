"""Pictures of RESULTS.md from the JSON that the benchmarks wrote.

    python benchmarks/pictures.py --attention attention.json --growth growth.json

Needs: pip install -c constraints.txt matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FIGURES = Path(__file__).parent / "figures"
# Okabe and Ito's palette, which colour-blind people can tell apart.
COLOURS = {
    "ours": "#0072B2",
    "entmax15": "#D55E00",
    "entmax15 k=100": "#E69F00",
    "softmax": "#009E73",
    "floor": "#999999",
}


def attention(rows: list[dict]) -> None:
    """Time of every peer as a multiple of ours, early and late."""
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4), sharey=True, layout="constrained"
    )
    for axis, phase in zip(axes, ("early", "late"), strict=True):
        chosen = [row for row in rows if row["phase"] == phase]
        places = range(len(chosen))
        for i, method in enumerate(m for m in COLOURS if m != "ours"):
            ratios = [r["seconds"][method] / r["seconds"]["ours"] for r in chosen]
            at = [place + (i - 1.5) * 0.2 for place in places]
            axis.bar(at, ratios, 0.18, label=method, color=COLOURS[method])
        axis.axhline(1, color="black", linewidth=1)
        axis.set_yscale("log")
        axis.set_xticks(
            list(places), [f"n = {r['n']:,}\nC = {r['C']:,}" for r in chosen]
        )
        axis.set_title(f"{phase} in training")
        axis.set_xlabel("batch")
    axes[0].set_ylabel("time, as a multiple of ours")
    named = axes[0].get_legend_handles_labels()
    figure.legend(*named, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(FIGURES / "attention.png", dpi=120)


def growth(rows: list[dict]) -> None:
    """Seconds and memory of one attention step against n."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    steps = [row for row in rows if row["kind"] == "step"]
    for method in ("ours", "softmax"):
        for phase, style in (("early", "--"), ("late", "-")):
            line = [r for r in steps if r["method"] == method and r["phase"] == phase]
            n = [r["n"] for r in line]
            look = {"label": f"{method}, {phase}", "color": COLOURS[method]}
            for axis, key in zip(axes, ("seconds", "mib"), strict=True):
                values = [max(r[key], 1e-3) for r in line]
                axis.plot(n, values, style, marker="o", **look)
    for axis, name in zip(axes, ("seconds per step", "MiB per step"), strict=True):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("samples in the batch, n")
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    axes[1].set_ylim(bottom=1)
    axes[0].legend(frameon=False)
    figure.suptitle("One attention step, forward and backward, C = 100")
    figure.tight_layout()
    figure.savefig(FIGURES / "growth.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attention", type=Path)
    parser.add_argument("--growth", type=Path)
    options = parser.parse_args()
    FIGURES.mkdir(exist_ok=True)
    for draw, file in ((attention, options.attention), (growth, options.growth)):
        if file is not None:
            draw(json.loads(file.read_text()))


if __name__ == "__main__":
    main()
