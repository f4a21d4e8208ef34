"""Trained networks asked about views: predictions, which of them is best, graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity, vstack
from torch import Tensor

from sagl.nn.cells import attention_by_cells
from sagl.nn.inference import Answer, Predictor, anchor_features, whole_set
from sagl.nn.missing import present_in, sharing_only
from sagl.nn.network import Linear, Network, ViewNetwork
from sagl.nn.sparse import CSR
from sagl.pipeline import drawn, search_rows
from sagl.search.score import Score, best_of
from sagl.search.space import Space
from sagl.search.stability import stability
from sagl.settings import Settings
from sagl.training.distributed import ranks, spread
from sagl.training.feed import Feed
from sagl.views import Views

_GRAPH_ROWS = 4096  # that are computed at a time
# From so many samples on, keys are looked at in cells: a block of rows with all keys is
# more than the cache holds.
_BY_CELLS = 10_000
# The sparsity of the graph of so many samples is counted, of more it is estimated.
_COUNTED_WHOLE, _COUNTED_ROWS = 20_000, 2048
_COUNTED_SCORES = 1 << 29  # of each view; of very many samples fewer rows


def anchors_from(
    views: Views, network: Network, n_anchors: int, seed: int
) -> list[Tensor]:
    """What new samples attend to: linear features of some samples, drawn at random."""
    features = views.take(drawn(len(views), n_anchors, seed))
    return anchor_features(network, [torch.from_numpy(h) for h in features])


def answers(
    predictor: Predictor, views: Views, within: slice = slice(None)
) -> Iterator[Answer]:
    """What the network says of each block of samples, or of those of a slice."""
    for block in views.blocks(predictor.block_rows, within):
        yield predictor.answer(
            [torch.from_numpy(h).to(predictor.device) for h in block]
        )


def most_likely(
    predictor: Predictor, views: Views
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster and confidence of each sample; never all probabilities at once.

    Each of several processes asks about some of the samples; all have all answers.
    """
    n, here = len(views), ranks()
    own, place = here.own(n), 0
    # Made at once: what is kept of each block would pin the memory blocks pass through.
    labels = np.empty(own.stop - own.start, np.int64)
    confidence = np.empty(len(labels))
    for answer in answers(predictor, views, own):
        q = answer.q.cpu().numpy()
        rows = slice(place, place + len(q))
        labels[rows], confidence[rows] = q.argmax(axis=1), q.max(axis=1)
        place = rows.stop
    return of_all(labels, n), of_all(confidence, n)


def of_all(own: NDArray[Any], n: int) -> NDArray[Any]:
    """All n rows, of which this process has its own."""
    whole: NDArray[Any] = ranks().gather(torch.from_numpy(own), n).numpy()
    return whole


class Choice(NamedTuple):
    """Which network and its score, and what was learned about samples."""

    best: int
    score: Score
    rows: NDArray[np.int64]
    stability: NDArray[np.float64]  # of the clusters of these rows


@torch.no_grad()
def choose(
    networks: Sequence[Network], settings: Settings, views: Views, device: torch.device
) -> Choice:
    """The best network by a score that needs no labels."""
    C = settings.n_clusters
    rows = search_rows(len(views), settings)
    features = Feed(views, networks[0], device, resident_bytes=0)(rows)
    space = Space(features, settings.search.neighbours(len(rows), C), settings.search)
    sample = views[rows]
    partitions = []
    for network in networks:
        anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
        partitions.append(most_likely(Predictor(network, anchors), sample)[0])
    tensors = [torch.from_numpy(labels).to(device) for labels in partitions]
    best, scores = best_of(space, tensors, C)
    others = partitions[:best] + partitions[best + 1 :]
    return Choice(best, scores[best], rows, stability(partitions[best], others, C))


@torch.no_grad()
def graphs_of(network: Network, views: Views) -> list[csr_matrix]:
    """Who attends to whom when all samples attend to each other, (n, n) per view.

    Rows and columns of samples that miss the view are empty.
    """
    return [
        identity(len(views), dtype=np.float32, format="csr")
        if view.graph == "identity"
        else _among_those_there(view, of_view)
        for view, of_view in zip(
            network.view_networks, _linear(network, views), strict=True
        )
    ]


def _among_those_there(view: ViewNetwork, linear: Linear) -> csr_matrix:
    n, rows = len(linear.values), _rows_there(linear)
    if len(rows) == n:
        return _in_blocks(view, linear)
    if len(rows) < 2:  # nobody to attend to
        return csr_matrix((n, n), dtype=np.float32)
    graph = _in_blocks(view, _of_rows(linear, rows)).tocoo()
    place = rows.cpu().numpy()
    entries = (graph.data, (place[graph.row], place[graph.col]))
    return csr_matrix(entries, shape=(n, n))


def _rows_there(linear: Linear) -> Tensor:
    """Of samples that have the view."""
    return torch.nonzero(~linear.keys[:, 0].isnan()).flatten()


def _of_rows(linear: Linear, rows: Tensor) -> Linear:
    gate = None if linear.gate is None else linear.gate[rows]
    values, queries, keys = (part[rows] for part in linear[:3])
    return Linear(values, queries, keys, gate)


@torch.no_grad()
def sparsity_of(network: Network, views: Views) -> list[float]:
    """Non-zeros over all entries of each view's graph, as ``graphs_of`` gives it.

    Nothing of the graphs is held. Of many samples some rows are counted. Those that
    miss the view do not count.
    """
    if network.view_networks[0].graph == "identity":
        return [1 / len(views)] * len(views.names)
    shares = []
    for i, view in enumerate(network.view_networks):
        linear = _linear_of(network, views, i)
        n = len(linear.values)
        there = _rows_there(linear)
        if len(there) < n:
            linear, n = _of_rows(linear, there), len(there)
        counted = min(_COUNTED_ROWS, max(1, _COUNTED_SCORES // n))
        step = max(1, n // counted) if n > _COUNTED_WHOLE else 1
        rows = torch.arange(0, n, step)
        own = rows[ranks().own(len(rows))].to(linear.values.device)
        blocks = torch.split(own, _GRAPH_ROWS) if len(own) else ()
        counts = [view.attention_graph(linear, b).values().numel() for b in blocks]
        total = ranks().sum_(torch.tensor(sum(counts)))
        shares.append(int(total) / (len(rows) * n))
    return shares


@torch.no_grad()
def graph_of_all_views(network: Network, views: Views) -> csr_matrix:
    """One graph of all views: by their scores together, or the mean of theirs."""
    if not network.has_heads or network.view_networks[0].graph == "identity":
        graphs = graphs_of(network, views)
        return csr_matrix(sum(graphs[1:], start=graphs[0]) / len(graphs))
    view, linear = network.view_networks[0], _linear(network, views)
    together = network.together(linear)
    graph = _in_blocks(view, together)
    present = present_in([of_view.keys for of_view in linear])
    if present is None:
        return graph
    device = present.device
    parts = (graph.indptr, graph.indices, graph.data)
    crow, cols, entries = (torch.from_numpy(x).to(device) for x in parts)
    whole = CSR(crow.long(), cols.long(), entries, graph.shape)
    asked, keys = together.queries, together.keys
    kept = sharing_only(whole, asked, keys, present, view.alpha, view.self_loops)
    return _as_csr(kept.entries, kept.cols.int(), kept.crow, kept.shape)


def _linear(network: Network, views: Views) -> list[Linear]:
    device = next(network.parameters()).device
    feed = Feed(views, network, device, resident_bytes=0)
    return whole_set(network, feed.in_order(), values=False)


def _linear_of(network: Network, views: Views, i: int) -> Linear:
    """Queries and keys of one view: half a kilobyte per sample, and nothing more."""
    view, n, start = network.view_networks[i], len(views), 0
    device = view.bias.device
    queries, keys, gates = torch.empty(0), torch.empty(0), []
    for block in Feed(views, network, device, resident_bytes=0).in_order():
        of_block = view.linear(block[i])
        if start == 0:
            queries, keys = (x.new_empty(n, x.shape[1]) for x in of_block[1:3])
        rows = slice(start, start + len(of_block.keys))
        queries[rows], keys[rows] = of_block.queries, of_block.keys
        gates += [] if of_block.gate is None else [of_block.gate]
        start = rows.stop
    return Linear(keys[:, :0], queries, keys, torch.cat(gates) if gates else None)


def _in_blocks(view: ViewNetwork, linear: Linear) -> csr_matrix:
    """The graph of all samples, a block of rows at a time: what is not part of it is
    never held for more than a block, and columns take four bytes each."""
    n = len(linear.values)
    if n > _BY_CELLS and view.alpha > 1:
        graph = attention_by_cells(
            linear, view.alpha, view.self_loops, spread=spread
        ).weights
        return _as_csr(graph.entries, graph.cols, graph.crow, graph.shape)

    def block(start: int) -> tuple[Tensor, ...]:
        A = view.attention_graph(linear, slice(start, start + _GRAPH_ROWS)).cpu()
        return A.values(), A.col_indices().int(), A.crow_indices()

    tasks = [partial(block, start) for start in range(0, n, _GRAPH_ROWS)]
    blocks = [
        _as_csr(entries, cols, crow, (len(crow) - 1, n))
        for entries, cols, crow in spread(tasks)
    ]
    return vstack(blocks, format="csr")


def _as_csr(
    entries: Tensor, cols: Tensor, crow: Tensor, shape: Sequence[int]
) -> csr_matrix:
    parts = tuple(part.cpu().numpy() for part in (entries, cols, crow))
    return csr_matrix(parts, shape=tuple(shape))
