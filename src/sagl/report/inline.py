"""A report of a model in memory: shown in a notebook, saved as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sagl.clusters.names import Names
from sagl.clusters.shown import sentence
from sagl.features.images import image_from_file
from sagl.features.samples import ListedSamples
from sagl.progress import progress
from sagl.report.inputs import Inputs, make_column
from sagl.report.page import FILE_NAME, STAGES, write_report
from sagl.report.style import load
from sagl.storage import check_writable, write_text

if TYPE_CHECKING:
    from sagl.estimator import SAGL

__all__ = ["Report", "report_of"]

_TITLE = "SAGL"


class Report:
    """A page that a notebook shows, and that ``save`` writes to a file.

    Attributes
    ----------
    html : str
        The whole page; it loads nothing.
    height : int
        Of the frame in a notebook, in pixels.
    """

    def __init__(self, html: str, words: str, height: int = 900) -> None:
        self.html = html
        self.height = height
        self._words = words

    def save(self, path: str | Path) -> Path:
        """Write the page; its name ends in .html."""
        path = Path(path)
        check_writable(path, "the name must end in", ".html")
        write_text(path, self.html)
        return path

    def __repr__(self) -> str:
        return f"Report({self._words})"

    def _repr_html_(self) -> str:
        # Apart from the notebook: names of samples cannot reach it, whatever they say.
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self._words)}" '
            'sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def report_of(
    model: SAGL,
    X: Any = None,
    *,
    texts: Sequence[str] | None = None,
    images: Sequence[Any] | None = None,
    labels: ArrayLike | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    height: int = 900,
    **options: Any,
) -> Report:
    """The report of a fitted model, as ``sagl report`` makes it of a run.

    Parameters
    ----------
    model : SAGL
    X : views of the fit, optional
        With them the map is of the representations, and each view has its graph.
    texts : sequence of str, optional
        What the samples are.
    images : sequence, optional
        What the samples are: Pillow images, arrays of pixels, or paths of files.
    labels : array-like, optional
        True classes; they only score.
    columns : mapping of str to sequence, optional
        What else is known of each sample, to colour by.
    height : int, default=900
        Of the frame in a notebook, in pixels.
    **options
        Of :func:`sagl.report.page.write_report`: ``embedding``, ``view_maps``,
        ``beside`` and others.
    """
    if texts is not None and images is not None:
        raise ValueError("give either texts or images, not both")
    views = None if X is None else model.check_views(X)
    n = len(model.labels_)
    known = getattr(model, "ids_", None)
    ids = [str(row) for row in range(n)] if known is None else list(known)
    samples = None
    if texts is not None:
        read = [str(text) for text in texts].__getitem__
        samples = ListedSamples("text", ids, None, read)
    elif images is not None:
        samples = ListedSamples("image", ids, None, _Pictures(images))
    for what, rows in {
        **{"texts": texts, "images": images, "labels": labels},
        **(columns or {}),
    }.items():
        length = None if rows is None else len(rows)  # type: ignore[arg-type]
        if length not in (None, n):
            raise ValueError(f"{what}: {length:,} entries for {n:,} samples")
    inputs = Inputs(
        ids,
        views,
        samples,
        None if samples is None else np.arange(n),
        None if labels is None else np.asarray(labels),
        tuple(
            make_column(name, ["" if v is None else str(v) for v in values])
            for name, values in (columns or {}).items()
        ),
        Names(model.names_),
    )
    with (
        TemporaryDirectory() as place,
        progress(STAGES, "report", "parts", show=model.verbose) as bar,
    ):

        def begun(stage: str) -> None:
            bar.note(stage)
            bar.update(1)

        run = Path(place) / _TITLE
        model.save(run)
        out = Path(place) / FILE_NAME
        write_report(run, inputs, out, progress=begun, **options)
        html = out.read_text(encoding="utf-8")
    found = sentence(model.labels_, model.view_names_).removesuffix(".")
    return Report(html, f"{_TITLE}, {found}", height)


class _Pictures:
    """Pillow images of what a picture may be given as."""

    def __init__(self, images: Sequence[Any]) -> None:
        self._images = images

    def __call__(self, row: int) -> Any:
        image = self._images[row]
        if isinstance(image, str | Path):
            return image_from_file(Path(image))
        if isinstance(image, np.ndarray):
            pixels = image
            if pixels.dtype.kind == "f":  # 0 to 1, as most libraries have it
                pixels = (255 * pixels.clip(0, 1)).round()
            return load("PIL.Image").fromarray(pixels.astype(np.uint8))
        return image
