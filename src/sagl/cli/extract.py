"""``sagl extract``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sagl.cli.options import (
    BACKBONES,
    JSON,
    extraction,
    option,
    print_json,
    taken_up,
    takes,
)

if TYPE_CHECKING:
    from sagl.features.extraction import Extraction


@takes(extraction)
def extract(
    options: dict[str, Any],
    source: str = typer.Argument(
        ...,
        metavar="SOURCE",
        help="A folder of images, a list of files, a table, tar shards, a file of "
        "texts, or the name of a data set.",
    ),
    out: Path = option(..., "The feature store; may be there.", metavar="STORE"),
    backbone: list[str] | None = BACKBONES,
    dtype: str | None = option(
        None, "float16, float32 or float64; by default float16."
    ),
    batch_size: int = option(64, "Samples that are embedded together."),
    shard: str | None = option(
        None,
        "Do part I of N, counted from 0; by default what torchrun or Slurm "
        "say, else all.",
        metavar="I/N",
    ),
    as_json: bool = JSON,
) -> None:
    """Turn samples into features, one view per backbone, and write them to STORE.

    Views that STORE has already stay as they are. What was interrupted is taken up by
    the same command. Samples that cannot be read are listed in STORE/skipped.csv.
    """
    from sagl.environment import share_of_process
    from sagl.features.extraction import extract_source

    share = share_of_process(shard)
    with taken_up():
        done = extract_source(
            source,
            backbone or [],
            out,
            dtype=dtype,
            batch_size=batch_size,
            share=share,
            **options,
        )
    if as_json:
        print_json(done.as_dict())
    else:
        _show(done, share)


def _show(done: Extraction, share: tuple[int, int]) -> None:
    if not done.complete:
        typer.echo(
            f"part {share[0]} of {share[1]} is done; the last process finishes "
            f"the store, or: sagl store merge {done.store}"
        )
        return
    for name, view in done.views.items():
        typer.echo(f"{name}: {view['rows']:,} rows of {view['dim']} {view['dtype']}")
    typer.echo(f"{done.samples:,} samples in {done.store}")
    if done.skipped:
        typer.echo(
            f"{done.skipped:,} could not be used: {done.store}/skipped.csv says why"
        )
