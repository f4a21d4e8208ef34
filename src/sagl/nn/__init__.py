"""The paper in pure torch, in the paper's order: encode, attend, gate, aggregate."""

from sagl.nn.attention import attend
from sagl.nn.encoder import LinearEncoder
from sagl.nn.entmax import entmax
from sagl.nn.gate import SparsityGate, row_factor
from sagl.nn.network import Network, ViewNetwork, vote
from sagl.nn.objective import (
    Loss,
    Objective,
    alignment,
    consensus,
    diversity,
    pseudo_label,
)

__all__ = [
    "LinearEncoder",
    "Loss",
    "Network",
    "Objective",
    "SparsityGate",
    "ViewNetwork",
    "alignment",
    "attend",
    "consensus",
    "diversity",
    "entmax",
    "pseudo_label",
    "row_factor",
    "vote",
]
