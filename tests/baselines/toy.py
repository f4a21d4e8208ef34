"""Methods of somebody else: what a user writes to add one, and some that misbehave."""

import os
import signal

import torch

from sagl.baselines import Baseline


class Nearest(Baseline):
    """Clusters around samples that lie far apart: the whole of a new method."""

    def __init__(
        self,
        n_clusters,
        *,
        steps=3,
        view_sizes=None,
        random_state=None,
        device="auto",
        verbose=False,
    ):
        self.n_clusters = n_clusters
        self.steps = steps
        self.view_sizes = view_sizes
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, views, generator):
        h = torch.from_numpy(next(iter(views.blocks(len(views))))[0]).double()
        chosen = [int(torch.randint(len(h), (), generator=generator))]
        for _ in self._steps(self.n_clusters - 1, lambda: {"centres": h[chosen]}):
            chosen.append(int(torch.cdist(h, h[chosen]).amin(dim=1).argmax()))
        return {"centres": h[chosen]}

    def _scores(self, features):
        centres = self.state_["centres"]
        return -(features[0][:, None] - centres).square().sum(dim=2)


class Broken:
    """Raises, as a method with a bug would."""

    def __init__(self, n_clusters, random_state=None):
        pass

    def fit(self, views):
        raise ArithmeticError("no answer\nto this")

    def predict(self, views):
        raise AssertionError("never fitted")


class Killed(Broken):
    """Dies without a word, as when memory runs out."""

    def fit(self, views):
        os.kill(os.getpid(), signal.SIGKILL)
