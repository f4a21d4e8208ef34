"""EVoC: clusters of embedding vectors, by the package of that name. Extra ``peers``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.baselines.base import whole
from sagl.baselines.transductive import Transductive
from sagl.environment import optional_module


@dataclass(eq=False, repr=False, kw_only=True)
class EVoC(Transductive):
    """Embedding vector oriented clustering (McInnes), which leaves samples out.

    A node embedding of the nearest-neighbour graph, clustered by density. Needs
    ``pip install "sagl[peers]"``. See ``covered_`` for the samples that it put into a
    cluster; all others get that of the nearest of them.

    Parameters
    ----------
    own_number : bool, default=False
        Take the number of clusters that EVoC finds most persistent, instead of about
        ``n_clusters``.
    """

    own_number: bool = False
    neighbours: int = whole(15, least=2)

    def _cluster(self, x: NDArray[np.float32], seed: int) -> NDArray[Any]:
        method = optional_module("evoc", "peers").EVoC(
            n_neighbors=max(2, min(self.neighbours, len(x) - 1)),
            approx_n_clusters=None if self.own_number else int(self.n_clusters),
            random_state=seed,
        )
        labels: NDArray[Any] = method.fit_predict(x)
        return labels
