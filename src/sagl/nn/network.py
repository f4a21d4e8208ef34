"""The network: per view encode, attend, aggregate; one softmax per view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from sagl.nn.attention import attend, check_dropout
from sagl.nn.choices import check_choice
from sagl.nn.encoder import LinearEncoder, Product
from sagl.nn.entmax import check_alpha
from sagl.nn.gate import GateForm, SparsityGate, row_factor

# Rows of a batch's graph that are counted for its sparsity.
_COUNTED_ROWS = 1024

GraphForm = Literal["sparse", "dense", "identity"]
GateInput = Literal["z", "features"]
VoteForm = Literal["mean", "product"]


class Linear(NamedTuple):
    """What one view makes of its features before any sample looks at another."""

    z: Tensor  # (n, C) linear features, the values of the attention
    queries: Tensor  # (n, C) Z U
    keys: Tensor  # (n, C) Z V
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
        join([part.z for part in parts]),
        join([part.queries for part in parts]),
        join([part.keys for part in parts]),
        join(gates) if gates else None,
    )


class ViewNetwork(nn.Module):
    """One view: h -> z -> A -> p (eqs. linearfeat, lrs, gate, entmax, rep)."""

    def __init__(
        self,
        width: int,
        n_clusters: int,
        *,
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
        C = n_clusters
        self.encoder = LinearEncoder(width, C, generator)
        self.bias = nn.Parameter(torch.zeros(C))
        if graph != "identity":
            self.U = nn.Parameter(_xavier(C, generator))
            self.V = nn.Parameter(_xavier(C, generator))
        self.gate: SparsityGate | None = None
        if gate != "none" and graph != "identity":
            self.gate = SparsityGate(C if gate_input == "z" else width, generator)

    def linear(self, h: Tensor, matmul: Product = torch.matmul) -> Linear:
        """Everything that is computed row by row. ``h`` is standardised, (n, d)."""
        z = self.encoder(h, matmul)
        if self.graph == "identity":
            return Linear(z, z, z, None)
        gate = None
        if self.gate is not None:
            omega = self.gate(z if self.gate_input == "z" else h, matmul)
            gate = row_factor(omega, self.gate_form)
        return Linear(z, matmul(z, self.U), matmul(z, self.V), gate)

    def forward(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Representations p, (n, C), of a batch that attends to itself."""
        return self.aggregate(self.linear(h), generator) + self.bias

    def aggregate(
        self, linear: Linear, generator: torch.Generator | None = None
    ) -> Tensor:
        """A z + z of samples that attend to each other (eq. rep without the bias).

        Nothing here belongs to one view, so stacked views can be given as well.
        """
        z, queries, keys, gate = linear
        if self.graph == "identity":
            return z + z
        aggregated = attend(
            queries,
            keys,
            z,
            gate,
            self.alpha,
            exclude=self.excluded(z),
            dropout=self.dropout if self.training else 0.0,
            generator=generator,
        )
        return aggregated + z

    def attention_graph(self, linear: Linear, rows: slice = slice(None)) -> Tensor:
        """A of samples that attend to each other, sparse CSR (n, n).

        ``rows`` limits it to the rows of some samples, who still attend to all.
        """
        z, queries, keys, gate = linear
        excluded = self.excluded(z)
        _, graph = attend(
            queries[rows],
            keys,
            z[:, :0],  # nothing to aggregate
            None if gate is None else gate[rows],
            self.alpha,
            return_graph=True,
            exclude=None if excluded is None else excluded[rows],
        )
        return graph

    def sparsity(self, h: Tensor) -> float:
        """Non-zeros over all entries of the graph of a batch.

        Of a large batch some rows are counted: early in training the whole graph would
        be a full matrix.
        """
        if self.graph == "identity":
            return 1 / len(h)
        rows = min(len(h), _COUNTED_ROWS)
        graph = self.attention_graph(self.linear(h), slice(rows))
        return graph.values().numel() / (rows * len(h))

    def excluded(self, z: Tensor) -> Tensor | None:
        """The key that each sample may not attend to: itself, or none."""
        return None if self.self_loops else torch.arange(z.shape[-2], device=z.device)


class Network(nn.Module):
    """L ≥ 1 views side by side; they meet only in the objective and in the vote."""

    def __init__(
        self,
        widths: Sequence[int],
        n_clusters: int,
        *,
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

    @property
    def view_networks(self) -> list[ViewNetwork]:
        """The networks of the single views."""
        return [view for view in self.views if isinstance(view, ViewNetwork)]

    def forward(
        self, features: Sequence[Tensor], generator: torch.Generator | None = None
    ) -> Tensor:
        """log q of each view, (L, n, C), for one batch of standardised features."""
        views = self.view_networks
        linear = [view.linear(h) for view, h in zip(views, features, strict=True)]
        return self.log_q(linear, generator)

    def log_q(
        self, linear: Sequence[Linear], generator: torch.Generator | None = None
    ) -> Tensor:
        """Aggregate all views at once and take their softmax (eqs. rep and prob)."""
        views = self.view_networks
        bias = torch.stack([view.bias for view in views])[:, None]
        p = views[0].aggregate(stack_views(linear), generator) + bias  # (L, n, C)
        return torch.log_softmax(p, dim=-1)

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
