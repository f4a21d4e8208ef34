"""The network: per view encode, attend, aggregate; one softmax per view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from sagl.checks import check_choice
from sagl.nn.attention import attend, check_dropout
from sagl.nn.encoder import LinearEncoder, Product
from sagl.nn.entmax import check_alpha
from sagl.nn.gate import GateForm, SparsityGate, row_factor
from sagl.nn.missing import hidden, present_in, said, weight_there, without_nan
from sagl.nn.ranks import ALONE, Ranks, SharedBatch

# Rows of a batch's graph that are counted for its sparsity.
_COUNTED_ROWS = 1024
# A neighbourhood that holds none of a cluster: the logarithm ends here.
_LEAST_Q = 1e-9

GraphForm = Literal["sparse", "dense", "identity"]
GateInput = Literal["z", "features"]
VoteForm = Literal["mean", "product"]


class Linear(NamedTuple):
    """What one view makes of its features before any sample looks at another."""

    values: Tensor  # (n, C) what is aggregated: z itself, or what the head says
    queries: Tensor  # (n, D) Z U
    keys: Tensor  # (n, D) Z V
    gate: Tensor | None  # (n,) factor on the scores of each row


def stack_views(views: Sequence[Linear]) -> Linear:
    """Views of the same samples on top of each other: (L, n, C), gates (L, n)."""
    return _joined(views, torch.stack)


def concatenate(parts: Sequence[Linear]) -> Linear:
    """Blocks of samples, one after the other."""
    return _joined(parts, torch.cat)


def _joined(parts: Sequence[Linear], join: Callable[[list[Tensor]], Tensor]) -> Linear:
    gates = [part.gate for part in parts if part.gate is not None]
    return Linear(
        join([part.values for part in parts]),
        join([part.queries for part in parts]),
        join([part.keys for part in parts]),
        join(gates) if gates else None,
    )


def side_by_side(views: Sequence[Linear], weights: Tensor) -> Linear:
    """All views as one, whose score of a pair is the weighted sum of theirs.

    What one view takes for near by chance, the others correct. ``attend`` divides by
    the root of the width, which here is that of all views together. A view that a
    sample misses adds nothing to its scores, and the others count for it.
    """
    width = sum(view.queries.shape[1] for view in views)
    queries = []
    for view, weight in zip(views, weights, strict=True):
        scale = weight * (width / view.queries.shape[1]) ** 0.5
        gate = 1.0 if view.gate is None else view.gate[:, None]
        queries.append(view.queries * (scale * gate))
    values = torch.stack([view.values for view in views]).mean(dim=0)
    keys = torch.cat([view.keys for view in views], dim=1)
    asked = torch.cat(queries, dim=1)
    present = present_in([view.keys for view in views])
    if present is not None:
        asked = without_nan(asked) / weight_there(present, weights)[:, None]
        keys = without_nan(keys)
    return Linear(values, asked, keys, None)


class ViewNetwork(nn.Module):
    """One view: h -> z -> A -> p (eqs. linearfeat, lrs, gate, entmax, rep).

    In the paper z is as wide as there are clusters, and both what samples are compared
    by and what is aggregated. With ``z_width`` the two part: z is of that width, at
    most the features', and compares; a linear ``head`` says the clusters.
    """

    head: nn.Parameter | None

    def __init__(
        self,
        width: int,
        n_clusters: int,
        *,
        z_width: int | None = None,
        alpha: float = 1.5,
        graph: GraphForm = "sparse",
        gate: GateForm = "none",
        gate_input: GateInput = "z",
        dropout: float = 0.0,
        self_loops: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_alpha(alpha)
        check_dropout(dropout)
        check_choice("graph", graph, GraphForm)
        check_choice("gate", gate, GateForm)
        check_choice("gate_input", gate_input, GateInput)
        self.alpha = 1.0 if graph == "dense" else alpha
        self.graph = graph
        self.gate_form = gate
        self.gate_input = gate_input
        self.dropout = dropout
        self.self_loops = self_loops
        D = n_clusters if z_width is None else min(z_width, width)
        self.encoder = LinearEncoder(width, D, generator)
        self.bias = nn.Parameter(torch.zeros(n_clusters))
        self.head = None
        if z_width is not None:  # solved in closed form, not by gradient
            zeros = torch.zeros(n_clusters, width)
            self.head = nn.Parameter(zeros, requires_grad=False)
            self.bias.requires_grad_(False)
        if graph != "identity":
            self.U = nn.Parameter(_xavier(D, generator))
            self.V = nn.Parameter(_xavier(D, generator))
        self.gate: SparsityGate | None = None
        if gate != "none" and graph != "identity":
            self.gate = SparsityGate(D if gate_input == "z" else width, generator)

    def linear(self, h: Tensor, matmul: Product = torch.matmul) -> Linear:
        """Everything that is computed row by row. ``h`` is standardised, (n, d)."""
        z = self.encoder(h, matmul)
        values = z if self.head is None else matmul(h, self.head.T)
        if self.graph == "identity":
            return Linear(values, z, z, None)
        gate = None
        if self.gate is not None:
            omega = self.gate(z if self.gate_input == "z" else h, matmul)
            gate = row_factor(omega, self.gate_form)
        return Linear(values, matmul(z, self.U), matmul(z, self.V), gate)

    def forward(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Representations p, (n, C), of a batch that attends to itself."""
        return self.aggregate(self.linear(h), generator) + self.bias

    def aggregate(
        self,
        linear: Linear,
        generator: torch.Generator | None = None,
        batch: SharedBatch | None = None,
    ) -> Tensor:
        """A z + z of samples that attend to each other (eq. rep without the bias).

        Nothing here belongs to one view, so stacked views can be given as well.
        """
        if self.graph == "identity":
            return linear.values + linear.values
        everyone, values = linear, linear.values
        if batch is not None:
            keys, values = batch.gather(linear.keys, linear.values)
            everyone = linear._replace(keys=keys)
        return self.attended(everyone, values, generator, batch=batch) + linear.values

    def attended(
        self,
        linear: Linear,
        values: Tensor,
        generator: torch.Generator | None = None,
        alpha: float | None = None,
        batch: SharedBatch | None = None,
    ) -> Tensor:
        """A values of samples that attend to each other, (n, C).

        With a ``batch`` the queries are its own rows, keys and values all rows.
        """
        excluded = self.excluded(values)
        if excluded is not None and batch is not None:
            excluded = excluded[batch.own]
        return attend(
            linear.queries,
            linear.keys,
            values,
            linear.gate,
            self.alpha if alpha is None else alpha,
            exclude=excluded,
            dropout=self.dropout if self.training else 0.0,
            generator=generator,
            batch=batch,
        )

    def attention_graph(
        self, linear: Linear, rows: slice | Tensor | None = None
    ) -> Tensor:
        """A of samples that attend to each other, sparse CSR (n, n).

        ``rows`` limits it to the rows of some samples, who still attend to all.
        """
        values, queries, keys, gate = linear
        rows = slice(None) if rows is None else rows
        excluded = self.excluded(values)
        _, graph = attend(
            queries[rows],
            keys,
            values[:, :0],  # nothing to aggregate
            None if gate is None else gate[rows],
            self.alpha,
            return_graph=True,
            exclude=None if excluded is None else excluded[rows],
        )
        return graph

    def sparsity(self, h: Tensor, ranks: Ranks = ALONE) -> float:
        """Non-zeros over all entries of the graph of a batch.

        Of a large batch some rows are counted: early in training the whole graph would
        be a full matrix. Of several processes, each counts some of them.
        """
        if self.graph == "identity":
            return 1 / len(h)
        rows = min(len(h), _COUNTED_ROWS)
        own, entries = ranks.own(rows), 0
        if own.stop > own.start:
            graph = self.attention_graph(self.linear(h), own)
            entries = graph.values().numel()
        return int(ranks.sum_(torch.tensor(entries, device=h.device))) / (rows * len(h))

    def excluded(self, values: Tensor) -> Tensor | None:
        """The key that each sample may not attend to: itself, or none."""
        if self.self_loops:
            return None
        return torch.arange(values.shape[-2], device=values.device)


class Network(nn.Module):
    """L ≥ 1 views side by side.

    In the paper they meet only in the objective and in the vote. With heads (see
    ``ViewNetwork``) a sample attends to others by the scores of all views together,
    weighted by ``view_weights``, and what the clusters of its neighbours say counts
    ``graph_weight`` times beside what the heads say.
    """

    view_weights: Tensor
    graph_weight: Tensor

    def __init__(
        self,
        widths: Sequence[int],
        n_clusters: int,
        *,
        z_width: int | None = None,
        alpha: float = 1.5,
        graph: GraphForm = "sparse",
        gate: GateForm = "none",
        gate_input: GateInput = "z",
        dropout: float = 0.0,
        self_loops: bool = True,
        vote: VoteForm = "mean",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not widths:
            raise ValueError("a network needs at least one view")
        check_choice("vote", vote, VoteForm)
        self.vote_form = vote
        self.views = nn.ModuleList(
            ViewNetwork(
                width,
                n_clusters,
                z_width=z_width,
                alpha=alpha,
                graph=graph,
                gate=gate,
                gate_input=gate_input,
                dropout=dropout,
                self_loops=self_loops,
                generator=generator,
            )
            for width in widths
        )
        self.has_heads = z_width is not None
        if self.has_heads:
            shares = torch.full((len(widths),), 1 / len(widths))
            self.register_buffer("view_weights", shares)
            self.register_buffer("graph_weight", torch.ones(()))

    @property
    def view_networks(self) -> list[ViewNetwork]:
        """The networks of the single views."""
        return [view for view in self.views if isinstance(view, ViewNetwork)]

    def forward(
        self,
        features: Sequence[Tensor],
        generator: torch.Generator | None = None,
        batch: SharedBatch | None = None,
    ) -> Tensor:
        """log q of each view, (L, n, C), for one batch of standardised features.

        Of a ``batch`` that processes share, features and log q are those of own rows.
        """
        views = self.view_networks
        linear = [view.linear(h) for view, h in zip(views, features, strict=True)]
        return self.log_q(linear, generator, batch)

    def log_q(
        self,
        linear: Sequence[Linear],
        generator: torch.Generator | None = None,
        batch: SharedBatch | None = None,
    ) -> Tensor:
        """Aggregate all views at once and take their softmax (eqs. rep and prob).

        With heads, the clusters of neighbours are those that their heads say.
        """
        views = self.view_networks
        bias = torch.stack([view.bias for view in views])[:, None]
        if self.has_heads:
            values = torch.stack([view.values for view in linear])  # (L, n, C)
            p = said(values, bias, self.view_weights)
            if views[0].graph != "identity":
                together = self.together(linear)
                q = torch.softmax(p.mean(dim=0), dim=-1)
                if batch is not None:
                    keys, q = batch.gather(together.keys, q)
                    together = together._replace(keys=keys)
                votes = views[0].attended(together, q, generator, batch=batch)
                p = p + self.graph_weight * votes
            return torch.log_softmax(p, dim=-1)
        p = views[0].aggregate(stack_views(linear), generator, batch) + bias
        return torch.log_softmax(p, dim=-1)

    def together(self, linear: Sequence[Linear]) -> Linear:
        """All views as one, each with its weight."""
        return side_by_side(linear, self.view_weights)

    def neighbour_log_q(
        self,
        features: Sequence[Tensor],
        clusters: Tensor,
        generator: torch.Generator | None = None,
        batch: SharedBatch | None = None,
        present: Tensor | None = None,
    ) -> Tensor:
        """log q of each view, (L, n, C), as the known clusters of neighbours say it.

        ``clusters`` are rows (n, C) that sum to one. The weights are the softmax of the
        scores, not their sparse projection: its gradient would not reach a neighbour
        that has no weight yet. Of a ``batch`` that processes share, ``clusters`` are
        those of all rows, features and log q those of own rows. Where ``present``,
        (n, L), says that a sample misses a view, nobody attends to it there.
        """
        q = []
        for i, (view, h) in enumerate(zip(self.view_networks, features, strict=True)):
            linear = view.linear(h)
            if present is not None:
                queries, keys = hidden(linear.queries, linear.keys, present[:, i])
                linear = linear._replace(queries=queries, keys=keys)
            if batch is not None:
                (keys,) = batch.gather(linear.keys)
                linear = linear._replace(keys=keys)
            q.append(view.attended(linear, clusters, generator, 1.0, batch))
        return torch.stack(q).clamp_min(_LEAST_Q).log()

    def vote(self, log_q: Tensor | Sequence[Tensor]) -> Tensor:
        """Probabilities of clusters, (n, C), from those of the views."""
        return vote_by_product(log_q) if self.vote_form == "product" else vote(log_q)


def vote(log_q: Tensor | Sequence[Tensor]) -> Tensor:
    """Mean over views of q, (n, C): its argmax is the cluster (eq. pseudo)."""
    return stacked(log_q).exp().mean(dim=0)


def vote_by_product(log_q: Tensor | Sequence[Tensor]) -> Tensor:
    """Geometric mean over views of q, (n, C), scaled to sum to one.

    The evidence of the views adds up. A mean of q comes to counting heads once each
    view is sure: it no longer knows which was the surer one.
    """
    return torch.softmax(stacked(log_q).mean(dim=0), dim=-1)


def stacked(log_q: Tensor | Sequence[Tensor]) -> Tensor:
    """Views as one tensor (L, n, C), given as such or one by one."""
    return log_q if isinstance(log_q, Tensor) else torch.stack(tuple(log_q))


def _xavier(width: int, generator: torch.Generator | None) -> Tensor:
    bound = (3 / width) ** 0.5  # sqrt(6 / (fan_in + fan_out)) of a square matrix
    return torch.empty(width, width).uniform_(-bound, bound, generator=generator)
