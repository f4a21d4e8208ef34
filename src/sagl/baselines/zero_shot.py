"""Zero-shot transfer: the class whose prompts are nearest. Uses the class names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sagl.baselines.base import Baseline
from sagl.baselines.features import State, unit_rows
from sagl.baselines.prompts import Templates, check_class_names, fill
from sagl.baselines.text import TextEncoder, embed_classes, find_view
from sagl.nn.inference import exact_matmul
from sagl.views import Views


class ZeroShot(Baseline):
    """CLIP's zero-shot classifier. **Uses class names**, and a text encoder.

    Each class is the mean of its prompts' embeddings of length one; a sample belongs to
    the class of the largest cosine. Nothing is learned from the samples. One view is
    used, the one that shares its space with the text encoder; others are ignored.

    Parameters
    ----------
    n_clusters : int
    class_names : list of str
        The name of each class; predicted numbers are positions in this list.
    text_encoder : str, callable or array
        A directory or hub name of a CLIP or SigLIP model of transformers; or a function
        from a list of texts to an array; or embeddings made elsewhere, of shape
        (n_clusters, width) or (n_clusters, texts per class, width), which need no
        names.
    view : str, optional
        The view of the same model; by default the only one as wide as the embeddings.
    templates : str or list of str, default="generic"
        A set of ``sagl.baselines.prompts.TEMPLATES``, or templates with ``{}`` for the
        name.
    temperature : float, default=0.01
        ``decision_function`` is cosine / temperature, whose softmax is CLIP's
        probability.

    References
    ----------
    Radford et al., "Learning transferable visual models from natural language
    supervision", ICML 2021.
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        class_names: Sequence[str] | None = None,
        text_encoder: TextEncoder = None,
        view: str | None = None,
        templates: Templates = "generic",
        temperature: float = 0.01,
        view_sizes: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.class_names = class_names
        self.text_encoder = text_encoder
        self.view = view
        self.templates = templates
        self.temperature = temperature
        self.view_sizes = view_sizes
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0; got {self.temperature}")
        texts = embed_classes(
            self.text_encoder, self._texts, self.n_clusters, self.device_
        )
        W = texts.mean_of_each_class(self.n_clusters)
        find_view(self.view, views.names, views.widths, W.shape[1])
        return {"W": W}

    def _texts(self) -> list[list[str]]:
        names = check_class_names(self.class_names, self.n_clusters)
        return fill(self.templates, names)

    def _scores(self, features: list[Tensor]) -> Tensor:
        W = self.state_["W"].double()
        i = find_view(self.view, self.view_names_, self.view_widths_, W.shape[1])
        return exact_matmul(unit_rows(features[i]), W.T) / self.temperature
