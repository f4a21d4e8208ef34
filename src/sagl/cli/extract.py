"""``sagl extract``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sagl.cli.options import (
    BACKBONES,
    argument,
    extraction,
    option,
    refuse_idle_of_models,
    say,
    taken_up,
    takes,
)


def _show(done: dict[str, Any]) -> None:
    if not done["complete"]:
        say(
            f"part {done['part']} of {done['parts']} is done; the last process "
            f"finishes the store, or: sagl store merge {done['store']}"
        )
        return
    for name, view in done["views"].items():
        say(f"{name}: {view['rows']:,} rows of {view['dim']} {view['dtype']}")
    say(f"{done['samples']:,} samples in {done['store']}")
    if done["skipped"]:
        skipped = f"{done['store']}/skipped.csv"
        say(f"{done['skipped']:,} could not be used: {skipped} says why")


@takes(extraction, show=_show)
def extract(
    options: dict[str, Any],
    source: str = argument(
        ...,
        "A folder of images, a list of files, a table, tar shards, a file of texts, or "
        "the name of a data set.",
        "SOURCE",
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
) -> dict[str, Any]:
    """Turn samples into features, one view per backbone, and write them to STORE.

    Views that STORE has already stay as they are. What was interrupted is taken up by
    the same command. Samples that cannot be read are listed in STORE/skipped.csv.

    Example: sagl extract photos --backbone dinov2-s --backbone clip-b32 --out store
    """
    from sagl.environment import share_of_process
    from sagl.features.extraction import extract_source

    refuse_idle_of_models(backbone or [])
    options |= {"dtype": dtype, "batch_size": batch_size}
    part, parts = options["share"] = share_of_process(shard)
    with taken_up():
        done = extract_source(source, backbone or [], out, **options).as_dict()
    return {**done, "part": part, "parts": parts}
