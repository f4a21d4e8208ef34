"""Every method at its own defaults on every set: quality, cost, and who wins.

    python benchmarks/quality.py --data ../shared/data
    python benchmarks/quality.py --methods kmeans,turtle,sagl --version long-tail
    python benchmarks/quality.py --picture benchmarks/figures/quality.png

Inductive protocol: fitted on the training split without labels, each test sample
predicted alone; labels only score. One setting of each method for all sets.

Versions: ``plain``; ``long-tail``, in both splits class sizes fall geometrically to a
twentieth; ``double`` and ``half``, twice and half as many clusters as classes, where
NMI and ARI are the fair measures, because ACC matches clusters and classes one to one.

Runs are kept in OUT/SET/runs, where `sagl compare --data DATA/SET --out OUT/SET` keeps
them, too: each takes up what the other did, and what was interrupted. Those behind
RESULTS.md are part of the repository (benchmarks/runs/quality.jsonl.gz): they are put
there first, and new ones are added to it, so that the table can be printed again and
what is missing measured. Whoever changes what a method finds changes the revision
(sagl/_version.py). The label-free scores that they hold are those of their day; no
table shows them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from cache import TABLES, pack, unpack
from data import DEFAULT_VIEWS
from gap_picture import draw_gaps
from quality_table import FAIR, markdown, sentences
from sagl.baselines.registry import Method
from sagl.cli.studies import parse_methods
from sagl.cli.study import show_runs
from sagl.experiments.compare import Comparison
from sagl.experiments.table import NOT_RUN, Row
from sagl.report.saving import save
from versions import VERSIONS, class_sizes, clusters_of, directory_of, source_of

TABLE = TABLES / "quality.jsonl.gz"
LOOKS = 8  # as `sagl compare` has it: part of what a run is known by


def main() -> None:
    options = _options()
    unpack(TABLE, options.out)
    start = time.monotonic()
    for version in options.version or ["plain"]:
        tables: dict[str, list[Row]] = {}
        for name in options.sets:
            left = None
            if options.minutes is not None:
                left = max(0.0, options.minutes - (time.monotonic() - start) / 60)
            methods = methods_for(name, options)
            try:
                tables[name] = measure(name, version, methods, options, left)
            finally:  # also of what was interrupted
                pack(options.out, TABLE)
        print(f"\n{version}\n\n{markdown(tables)}")
        if version == "long-tail":
            for name in options.sets:
                source = source_of(options.data, options.out, name, version)
                print(f"- {name}: {class_sizes(source)}")
        for line in sentences(tables, version):
            print(f"- {line}")
        if options.picture is not None:
            picture = options.picture
            if version != "plain":
                picture = picture.with_stem(f"{picture.stem}-{version}")
            save(draw_gaps(tables, FAIR[version][0]), picture)


def methods_for(name: str, options: argparse.Namespace) -> list[Method]:
    """The methods with the parameters that are meant for all sets or for this one."""
    params = []
    for text in options.param:
        place, slash, rest = text.partition("/")
        if not slash or "=" in place:
            params.append(text)
        elif place == name:
            params.append(rest)
        elif place not in DEFAULT_VIEWS:
            raise SystemExit(f"--param {text}: there is no set {place!r}")
    return parse_methods(options.methods, params, None, None, None)


def measure(
    name: str,
    version: str,
    methods: list[Method],
    options: argparse.Namespace,
    minutes: float | None,
) -> list[Row]:
    """Do the runs of one set that are not there yet; the rows of its table."""
    source = source_of(options.data, options.out, name, version)
    comparison = Comparison(
        source,
        methods,
        directory_of(options.out, name, version),
        n_clusters=clusters_of(source, version),
        seeds=options.seeds,
        looks=LOOKS,
    )
    print(
        f"{name}, {version}: {comparison.n_clusters} clusters, "
        f"{comparison.n_train:,} samples fitted, {comparison.n_scored:,} scored",
        file=sys.stderr,
    )
    shown = show_runs(comparison.total, quiet=False)
    comparison.run(jobs=options.jobs, minutes=minutes, progress=shown)
    return [row for row in comparison.rows() if row.note != NOT_RUN]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--sets", nargs="+", choices=DEFAULT_VIEWS, default=list(DEFAULT_VIEWS)
    )
    parser.add_argument("--methods", default="all", help="all, or NAME,NAME,…")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="[SET/]METHOD:NAME=VALUE",
        help="for all sets, or for one: pets_clip/turtle:steps=3000",
    )
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=TABLES / "quality")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="each method's gap to the probe"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
