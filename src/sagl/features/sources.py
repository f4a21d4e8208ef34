"""From what people name, a folder and some models, to a feature store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sagl.features.extraction import BATCH_SIZE, Extraction, extract
from sagl.features.shares import Share, device_of_process
from sagl.features.store.manifest import VIEW_NAME, check_view_name

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def extract_source(
    source: str,
    backbones: Sequence[str],
    out: Path,
    *,
    reader: Mapping[str, Any] | None = None,
    dtype: str | None = None,
    batch_size: int = BATCH_SIZE,
    workers: int | None = None,
    share: Share | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: bool = False,
    accept: Callable[[int], object] | None = None,
) -> Extraction:
    """Read samples, load models by name, extract.

    Parameters
    ----------
    source : str
        What ``sagl.features.readers.open_samples`` takes.
    backbones : sequence of str
        ``BACKBONE`` or ``NAME=BACKBONE``, where NAME is what the view is called.
    reader : mapping, optional
        Options for the reader, such as ``column``.
    accept : callable, optional
        Is told the number of samples, and may refuse it before the work begins.
    """
    from sagl.features.readers import open_samples

    named = parse_backbones(backbones)
    given = {k: v for k, v in (reader or {}).items() if v is not None}
    samples = open_samples(source, **given)
    if accept is not None:
        accept(len(samples.ids))
    place = device_of_process(device)
    models = {
        name: _load(backbone, place, trust_remote_code)
        for name, backbone in named.items()
    }
    return extract(
        samples,
        models,
        out,
        dtype=dtype,
        batch_size=batch_size,
        workers=workers,
        share=share,
        progress=progress,
    )


def parse_backbones(options: Sequence[str]) -> dict[str, str]:
    """Backbones by the name of their view.

    >>> parse_backbones(["dinov3-l", "small=hf:facebook/dinov2-small"])
    {'dinov3-l': 'dinov3-l', 'small': 'hf:facebook/dinov2-small'}
    >>> parse_backbones(["hf:google/siglip2-base#text", "npy:./saved/clip.npy"])
    {'siglip2-base': 'hf:google/siglip2-base#text', 'clip': 'npy:./saved/clip.npy'}
    """
    if not options:
        raise ValueError(
            "which models are to look at the samples? Give --backbone, once per view; "
            "sagl backbones lists some"
        )
    named: dict[str, str] = {}
    for option in options:
        name, equals, backbone = option.partition("=")
        # A path may hold a "=", too, but it comes after a ":" or a "/".
        if not (equals and VIEW_NAME.fullmatch(name)):
            name, backbone = _view_name(option), option
        check_view_name(name)
        if not backbone:
            raise ValueError(f"--backbone {option}: nothing after the '='")
        if name in named:
            raise ValueError(
                f"--backbone {option}: there is a view {name!r} already; name it "
                "differently with NAME=BACKBONE"
            )
        named[name] = backbone
    return named


def _view_name(backbone: str) -> str:
    """The last part of a model's name, without revision, side or suffix."""
    source, colon, identifier = backbone.partition(":")
    path = re.split(r"[#@]|::", identifier if colon else source)[0]
    last = Path(path).resolve().name if path.startswith(".") else Path(path).name
    if source == "npy":
        last = Path(last).stem
    return _NOT_IN_NAMES.sub("-", last).strip("-._") or "view"


def _load(backbone: str, device: str, trust_remote_code: bool) -> Any:
    if backbone.startswith("npy:"):
        from sagl.features.backbones.npy import read_saved

        return read_saved(backbone)
    from sagl.features.backbones import load_backbone

    return load_backbone(backbone, device=device, trust_remote_code=trust_remote_code)
