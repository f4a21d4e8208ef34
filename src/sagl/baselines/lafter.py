"""LaFTer: a classifier trained on texts, then tuned on unlabelled images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional

from sagl.baselines.base import (
    State,
    Watch,
    random_batches,
    resident,
    unit_rows,
)
from sagl.baselines.lafter_images import (
    ImageList,
    Images,
    PromptedEncoder,
    as_tensor,
    distorted,
    load_encoder,
    plain_crop,
)
from sagl.baselines.zero_shot import TextBaseline, find_view
from sagl.checks import integer, number
from sagl.environment import pick_device
from sagl.nn.encoder import uniform_fan_in
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

# About the length of CLIP's image features, which the paper's second stage takes as
# they are; at length one W would learn how frequent classes are before anything else.
_FEATURE_NORM = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class LaFTer(TextBaseline):
    """Learn to classify texts, apply it to images. **Uses class names.**

    First a linear classifier W learns to tell the texts of the classes apart, from
    their embeddings with Gaussian noise; because images share the space of the texts,
    it classifies them, too. Then it is tuned on unlabelled images with the labels that
    the text classifier gives them:

    * with ``image_encoder`` and ``fit(X, images=...)``, as in the paper: W, prompt
      tokens and the layer norms of the encoder learn to give a distorted image the
      label of the plain one. ``predict`` then needs ``images``, too;
    * from features alone, **which the paper does not do**: W alone learns these labels,
      from the features as they are. ``epochs=0`` leaves it out.

    One view is used, the one that shares its space with the text encoder.

    Parameters
    ----------
    n_clusters : int
    class_names, text_encoder, view, templates
        As in :class:`~sagl.baselines.zero_shot.TextBaseline`.
    descriptions : dict of str to list of str, optional
        More texts for each class name, as a language model writes them. The paper uses
        them beside the templates.
    image_encoder : str, optional
        A directory or hub name of the CLIP model whose vision transformer is tuned.
    n_prompts : int, default=50
        Prompt tokens of the image encoder.
    noise : float, default=0.1
        Standard deviation of the noise on text embeddings, which have length one.
    smoothing : float, default=0.1
        Label smoothing of both cross-entropies.
    text_steps : int, default=400
        Steps on the texts, all at once; the authors take 400 to 600.
    epochs : int, default=50
        Passes over the images.
    batch_size : int, default=50
    learning_rate : float, default=5e-4
    weight_decay : float, default=0.01

    References
    ----------
    Mirza et al., "LaFTer: Label-free tuning of zero-shot classifier using language and
    unlabeled image collections", NeurIPS 2023.
    """

    # Those of a fit under way.
    _images: Images | None = field(default=None, init=False)

    descriptions: Mapping[str, Sequence[str]] | None = None
    image_encoder: str | Path | None = None
    n_prompts: int = 50
    noise: float = 0.1
    smoothing: float = 0.1
    text_steps: int = 400
    epochs: int = 50
    batch_size: int = 50
    learning_rate: float = 5e-4
    weight_decay: float = 0.01

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        images: Images | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Learn from texts and from the views, or from ``images`` of the same samples.

        ``images`` are paths, or arrays of shape (height, width, 3) in uint8. ``y`` is
        ignored.
        """
        if (images is None) != (self.image_encoder is None):
            raise ValueError(
                "tuning on pictures needs both LaFTer(image_encoder=...) and "
                "fit(X, images=...)"
            )
        if images is not None and watch is not None:
            raise ValueError("a watch has no images; leave out watch or images")
        self._images = images
        try:
            return super().fit(X, y, watch=watch)
        finally:
            del self._images

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        self._check()
        texts = self._embed()
        width = texts.embeddings.shape[1]
        view = find_view(self.view, views.names, views.widths, width)
        start = uniform_fan_in((self.n_clusters, width), width, generator)
        W = nn.Parameter(start.to(self.device_))
        embeddings, classes = (t.to(self.device_) for t in texts)
        student = self._student(views, view, generator)
        n = len(views)
        rows = random_batches(n, self.batch_size, self.seed_, self.device_)
        tuning_steps = self.epochs * batches_per_epoch(n, min(self.batch_size, n))
        steps = self._steps(
            self.text_steps + tuning_steps,
            lambda: {"W": W.detach().cpu(), **student.learned()},
        )

        def some_texts() -> tuple[Tensor, Tensor]:
            return noisy(embeddings, self.noise, generator), classes

        def some_images() -> tuple[Tensor, Tensor]:
            return student.batch(next(rows), teacher)

        self._descend(islice(steps, self.text_steps), W, [W], some_texts)
        teacher = W.detach().clone()
        self._descend(steps, W, [W, *student.parameters()], some_images)
        return {"W": W.detach().cpu(), **student.learned()}

    def _student(
        self, views: Views, view: int, generator: torch.Generator
    ) -> FeatureStudent | ImageStudent:
        name = views.names[view]
        if self._images is None or self.image_encoder is None:
            (features,) = resident(Views({name: views[name]}), self.device_)
            return FeatureStudent(features)
        listed = _checked(self._images, len(views))
        encoder = load_encoder(
            self.image_encoder,
            views.widths[view],
            self.n_prompts,
            generator,
            self.device_,
        )
        return ImageStudent(encoder, listed, self.seed_)

    def _descend(
        self,
        steps: Iterable[int],
        W: nn.Parameter,
        parameters: list[nn.Parameter],
        batch: Callable[[], tuple[Tensor, Tensor]],
    ) -> None:
        """Smoothed cross-entropy of x W^T with labels, for batches of x and labels."""
        matrices = [p for p in parameters if p.ndim > 1]
        vectors = [p for p in parameters if p.ndim == 1]  # scales and shifts of norms
        optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": self.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=self.learning_rate,
        )
        for _ in steps:
            x, labels = batch()
            loss = functional.cross_entropy(
                x @ W.T, labels, label_smoothing=self.smoothing
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _texts(self) -> list[list[str]]:
        texts = super()._texts()
        if self.descriptions is None:
            return texts
        for name, of_class in zip(self.class_names or (), texts, strict=True):
            more = self.descriptions.get(name)
            if not more or isinstance(more, str):
                raise ValueError(f"descriptions has no list of texts for {name!r}")
            of_class.extend(more)
        return texts

    def predict(self, X: Any, *, images: Images | None = None) -> NDArray[np.int64]:
        """The class of each sample; a model tuned on images needs their images."""
        return super().predict(self._tuned(X, images))

    def decision_function(
        self, X: Any, *, images: Images | None = None
    ) -> NDArray[np.float64]:
        """How well each sample fits each class, (n_samples, C); larger is better."""
        return super().decision_function(self._tuned(X, images))

    def _tuned(self, X: Any, images: Images | None) -> Any:
        """The views, with features of the tuned encoder where frozen ones were."""
        check_is_fitted(self, "state_")
        images = self._images if images is None else images
        if (images is None) == ("prompts" in self.state_):
            raise ValueError(
                "the model was tuned on images: give images= of the samples, too"
                if images is None
                else "the model was not tuned on images: leave out images="
            )
        if images is None:
            return X
        views = Views(X, view_sizes=None if isinstance(X, Views) else self.view_sizes)
        listed = _checked(images, len(views))
        if self.image_encoder is None:  # a loaded model whose encoder was a Path
            raise ValueError("say where it is with set_params(image_encoder=...)")
        width, n_prompts = self.state_["W"].shape[1], len(self.state_["prompts"])
        encoder = load_encoder(
            self.image_encoder,
            width,
            n_prompts,
            torch.Generator(),
            pick_device(self.device),
        )
        encoder.adopt(self.state_)
        view = views.names[find_view(self.view, views.names, views.widths, width)]
        return Views({**dict(views.items()), view: encoder.encode(listed)})

    def _check(self) -> None:
        for name in ("text_steps", "batch_size", "n_prompts"):
            integer(name, getattr(self, name), 1)
        integer("epochs", self.epochs, 0 if self._images is None else 1)
        for name in ("noise", "weight_decay"):
            number(name, getattr(self, name), 0)
        number("smoothing", self.smoothing, 0, below=1)
        number("learning_rate", self.learning_rate, 0, strict=True)


def noisy(x: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    """x with Gaussian noise, drawn on the CPU so that devices agree."""
    return x + deviation * torch.randn(x.shape, generator=generator).to(x)


def _checked(images: Images, n: int) -> ImageList:
    if len(images) != n:
        raise ValueError(f"{n} samples need as many images; got {len(images)}")
    return ImageList(images)


class FeatureStudent:
    """Batches for tuning without images: features with the labels of the teacher."""

    def __init__(self, features: Tensor) -> None:
        self.features = _FEATURE_NORM * unit_rows(features)

    def parameters(self) -> list[nn.Parameter]:
        return []

    def learned(self) -> State:
        return {}

    def batch(self, rows: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        h = self.features[rows]
        return h, (h @ teacher.T).argmax(dim=1)


class ImageStudent:
    """Distorted images, with the labels that the teacher gives to the plain ones."""

    def __init__(self, encoder: PromptedEncoder, images: ImageList, seed: int) -> None:
        self.encoder = encoder
        self.images = images
        self._random = np.random.default_rng(seed)

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in self.encoder.parameters() if p.requires_grad]

    def learned(self) -> State:
        return self.encoder.learned()

    def batch(self, rows: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        """Features of distorted images, and the teacher's labels, without prompts."""
        size, device = self.encoder.size, self.encoder.prompts.device
        chosen = [self.images[i] for i in rows.tolist()]
        plain = as_tensor([plain_crop(image, size) for image in chosen])
        strong = as_tensor([distorted(p, size, self._random) for p in chosen])
        with torch.no_grad():
            seen = self.encoder(plain.to(device), prompted=False)
            labels = (seen @ teacher.T).argmax(dim=1)
        return self.encoder(strong.to(device)), labels
