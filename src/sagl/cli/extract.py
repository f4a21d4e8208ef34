"""``sagl extract``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sagl.cli.options import DeviceOption, JsonOption, QuietOption, print_json
from sagl.cli.source_options import (
    BackboneOption,
    ColumnOption,
    IdColumnOption,
    KindOption,
    LabelColumnOption,
    RemoteCodeOption,
    SplitOption,
    WorkersOption,
    reader_options,
)

if TYPE_CHECKING:
    from sagl.features.extraction import Extraction
    from sagl.features.workers import Share


def extract(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of images, a list of files, a table, tar shards, a file of "
            "texts, or the name of a data set.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="STORE", help="The feature store; may be there.")
    ],
    backbone: BackboneOption = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="float16, float32 or float64; by default float16."),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(help="Samples that are embedded together.")
    ] = 64,
    workers: WorkersOption = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Do part I of N, counted from 0; by default what torchrun or Slurm "
            "say, else all.",
        ),
    ] = None,
    kind: KindOption = None,
    column: ColumnOption = None,
    id_column: IdColumnOption = None,
    label_column: LabelColumnOption = None,
    split: SplitOption = None,
    device: DeviceOption = "auto",
    trust_remote_code: RemoteCodeOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Turn samples into features, one view per backbone, and write them to STORE.

    Views that STORE has already stay as they are. What was interrupted is taken up by
    the same command. Samples that cannot be read are listed in STORE/skipped.csv.
    """
    from sagl.features.extraction import extract_source
    from sagl.features.workers import parse_share, share_of_process

    share = share_of_process() if shard is None else parse_share(shard)
    try:
        done = extract_source(
            source,
            backbone or [],
            out,
            reader=reader_options(kind, column, id_column, label_column, split),
            dtype=dtype,
            batch_size=batch_size,
            workers=workers,
            share=share,
            device=device,
            trust_remote_code=trust_remote_code,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        typer.echo("sagl: interrupted; the same command takes up the rest", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json(done.as_dict())
    else:
        _show(done, share)


def _show(done: Extraction, share: Share) -> None:
    if not done.complete:
        typer.echo(
            f"part {share.index} of {share.count} is done; the last process finishes "
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
