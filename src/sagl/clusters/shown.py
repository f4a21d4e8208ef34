"""How a model looks where it is shown: as a line of text, and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.names import name_of
from sagl.model import Model

if TYPE_CHECKING:
    from sagl.report.inline import Report

_MOST_ROWS = 12  # clusters in a notebook
_HEAD = ("cluster", "samples", "", "mean confidence")


def sentence(labels: NDArray[np.int64], views: Sequence[str]) -> str:
    """What was found, in one sentence.

    >>> import numpy as np
    >>> sentence(np.array([0, 1, 1]), ["dino", "clip"])
    '3 samples in 2 clusters, seen through 2 views: dino and clip.'
    """
    samples, clusters, seen = (
        f"{n:,} {noun}" + "s" * (n != 1)
        for n, noun in (
            *((len(labels), "sample"), (len(np.unique(labels)), "cluster")),
            (len(views), "view"),
        )
    )
    listed = " and ".join(filter(None, (", ".join(views[:-1]), views[-1])))
    return f"{samples} in {clusters}, seen through {seen}: {listed}."


def found_html(model: Model) -> str:
    """What was found as HTML: the sentence, and the largest clusters by name."""
    labels = model.labels
    sizes = np.bincount(labels, minlength=model.settings.n_clusters)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    rows = []
    for k in order[:_MOST_ROWS].tolist():
        confidence = float(model.confidence[labels == k].mean())
        share = sizes[k] / sizes.max()
        bar = (
            '<div style="height:0.5em;border-radius:1em;background:currentColor;'
            f'opacity:0.45;width:{6 * share:.2f}em"></div>'
        )
        cells = (escape(name_of(model.names, k)), f"{sizes[k]:,}", bar)
        rows.append((*cells, f"{confidence:.3f}"))
    more = len(order) - len(rows)
    note = f"<p>and {more} smaller clusters</p>" if more > 0 else ""
    text = escape(sentence(labels, model.view_names))
    return f"<div><p>{text}</p>{_table(_HEAD, rows)}{note}</div>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, which are HTML."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


class Shown:
    """For an estimator of scikit-learn that has a ``Model`` once it is fitted."""

    _model: Model

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        if not hasattr(self, "_model"):
            return text
        found = sentence(self._model.labels, self._model.view_names)
        return f"<{text}: {found.removesuffix('.')}>"

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + (found_html(self._model) if hasattr(self, "_model") else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def report(self, X: Any = None, **known: Any) -> Report:
        """What was found as a page: shown in a notebook, saved by its ``save``.

        Parameters
        ----------
        X : views of the fit, optional
            With them the map is of the representations, and each view has its graph.
        **known
            What else is known, and options of the page, as in
            :func:`sagl.report.inline.report_of`: ``texts``, ``images``, ``labels``,
            ``columns``, ``embedding``, ``view_maps`` and others.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from sagl import SAGL
        >>> X, _ = make_blobs(60, n_features=4, centers=3, random_state=0)
        >>> model = SAGL(3, random_state=0).fit({"left": X[:, :2], "right": X[:, 2:]})
        >>> model.report()
        Report(SAGL, 60 samples in 3 clusters, seen through 2 views: left and right)
        """
        # The report is made of models, not the other way round: found when asked for.
        module = import_module("sagl.report.inline")
        page: Report = module.report_of(self, X, **known)
        return page
