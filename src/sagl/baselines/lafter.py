"""LaFTer: a classifier trained on texts, then tuned on unlabelled images."""

from __future__ import annotations

import math
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
from torch.nn.functional import cross_entropy

from sagl.baselines.base import (
    State,
    Watch,
    descend,
    random_batches,
    real,
    resident,
    whole,
)
from sagl.baselines.lafter_images import (
    Image,
    Images,
    as_tensor,
    check_images,
    distorted,
    plain_crop,
    read_image,
)
from sagl.baselines.zero_shot import TextBaseline
from sagl.checks import integer
from sagl.environment import pick_device
from sagl.features.pretrained import load_model
from sagl.nn.encoder import uniform_fan_in
from sagl.nn.neighbours import unit_rows
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

# About the length of CLIP's image features, which the paper's second stage takes as
# they are; at length one W would learn how frequent classes are before anything else.
_FEATURE_NORM = 10.0

_CLASSES = {
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
}


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

    Parameters not named here are those of
    :class:`~sagl.baselines.zero_shot.TextBaseline`.

    Parameters
    ----------
    descriptions : dict of str to list of str, optional
        More texts for each class name, as a language model writes them. The paper uses
        them beside the templates.
    image_encoder : str, optional
        A directory or hub name of the CLIP model whose vision transformer is tuned.
    noise : float, default=0.1
        Standard deviation of the noise on text embeddings, which have length one.
    smoothing : float, default=0.1
        Label smoothing of both cross-entropies.
    text_steps : int, default=400
        Steps on the texts, all at once; the authors take 400 to 600.

    References
    ----------
    Mirza et al., "LaFTer: Label-free tuning of zero-shot classifier using language and
    unlabeled image collections", NeurIPS 2023.

    Examples
    --------
    >>> from sagl.baselines import LaFTer
    >>> texts = np.eye(2, 4)  # an embedding of each class's name
    >>> images = np.array([[0.9, 0.1, 0, 0], [0, 1, 0.2, 0], [0.8, 0, 0, 0.1]])
    >>> model = LaFTer(n_clusters=2, text_encoder=texts, epochs=2, random_state=0)
    >>> model.fit({"clip": images}).labels_
    array([0, 1, 0])
    """

    # Those of a fit under way.
    _images: Images | None = field(default=None, init=False)

    descriptions: Mapping[str, Sequence[str]] | None = None
    image_encoder: str | Path | None = None
    n_prompts: int = whole(50)
    noise: float = real(0.1)
    smoothing: float = real(0.1, below=1)
    text_steps: int = whole(400)
    epochs: int = whole(50, least=0)
    batch_size: int = whole(50)
    learning_rate: float = real(5e-4, strict=True)
    weight_decay: float = real(0.01)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        images: Images | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Learn from texts and from the views, or from ``images`` of the same samples.

        ``images`` are paths, or arrays of shape (height, width, 3) in uint8.
        """
        if (images is None) != (self.image_encoder is None):
            raise ValueError(
                "tuning on pictures needs both LaFTer(image_encoder=...) and "
                "fit(X, images=...)"
            )
        if images is not None:
            integer("epochs", self.epochs, 1)
            if watch is not None:
                raise ValueError("a watch has no images; leave out watch or images")
        self._images = images
        try:
            return super().fit(X, y, watch=watch)
        finally:
            del self._images

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        embeddings, classes = (t.to(self.device_) for t in self._embed())
        width = embeddings.shape[1]
        view = views.names[self._shared_view(width)]
        start = uniform_fan_in((self.n_clusters, width), width, generator)
        W = nn.Parameter(start.to(self.device_))
        rows = random_batches(len(views), self.batch_size, self.seed_, self.device_)
        random = np.random.default_rng(self.seed_)
        images, tuned = self._images, dict[str, nn.Parameter]()
        if images is None:
            (features,) = resident(Views({view: views[view]}), self.device_)
            features = _FEATURE_NORM * unit_rows(features)
        else:
            check_images(images, len(views))
            encoder = self._encoder(width, self.n_prompts, generator)
            tuned = encoder.tunable()

        def noisy_texts() -> tuple[Tensor, Tensor]:
            # Drawn on the CPU so that devices agree.
            noise = torch.randn(embeddings.shape, generator=generator).to(embeddings)
            return embeddings + self.noise * noise, classes

        def drawn_images() -> tuple[Tensor, Tensor]:
            """Features, and the labels that the classifier of texts gives them."""
            if images is None:
                x = seen = features[next(rows)]
            else:
                chosen = [read_image(images[i]) for i in next(rows).tolist()]
                x, seen = encoder.distorted_and_plain(chosen, random)
            return x, (seen @ teacher.T).argmax(dim=1)

        tuning_steps = self.epochs * batches_per_epoch(len(views), self.batch_size)
        learned: State = {"W": W, **tuned}
        steps = self._steps(self.text_steps + tuning_steps, lambda: learned)
        self._descend(islice(steps, self.text_steps), W, [], noisy_texts)
        teacher = W.detach().clone()
        self._descend(steps, W, list(tuned.values()), drawn_images)
        return learned

    def _descend(
        self,
        steps: Iterable[int],
        W: nn.Parameter,
        others: list[nn.Parameter],
        batch: Callable[[], tuple[Tensor, Tensor]],
    ) -> None:
        """Smoothed cross-entropy of x W^T with labels, for batches of x and labels."""
        matrices = [W, *(p for p in others if p.ndim > 1)]
        vectors = [p for p in others if p.ndim == 1]  # scales and shifts of norms
        decays = ((matrices, self.weight_decay), (vectors, 0.0))
        groups = [{"params": group, "weight_decay": decay} for group, decay in decays]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate)
        for _ in steps:
            x, labels = batch()
            loss = cross_entropy(x @ W.T, labels, label_smoothing=self.smoothing)
            descend(optimizer, loss)

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
        """The class of each sample; a model tuned on images needs theirs, too."""
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
        views = self._as_views(X)
        check_images(images, len(views))
        width = self.state_["W"].shape[1]
        n_prompts = len(self.state_["prompts"])
        encoder = self._encoder(width, n_prompts, torch.Generator())
        with torch.no_grad():
            for name, parameter in encoder.tunable().items():
                parameter.copy_(self.state_[name])
        view = views.names[self._shared_view(width)]
        return Views({**dict(views.items()), view: encoder.encode(images)})

    def _encoder(
        self, width: int, n_prompts: int, generator: torch.Generator
    ) -> PromptedEncoder:
        """The image encoder with fresh prompts, its features of that width."""
        if self.image_encoder is None:  # a loaded model whose encoder was a Path
            raise ValueError("say where it is with set_params(image_encoder=...)")
        transformer = load_model(self.image_encoder, _CLASSES)
        made = transformer.config.projection_dim
        if made != width:
            raise ValueError(
                f"{self.image_encoder} makes image features of width {made}, the texts "
                f"have {width}; both must come from the same model"
            )
        encoder = PromptedEncoder(transformer, n_prompts, generator)
        return encoder.to(pick_device(self.device))


class PromptedEncoder(nn.Module):
    """A vision transformer that also attends to ``prompts``, (tokens, hidden width).

    The prompts stand between the class token and the patches. They and the scales and
    shifts of the layer norms can be learned; all else is frozen.
    """

    def __init__(self, transformer: Any, n_prompts: int, generator: torch.Generator):
        super().__init__()
        self.transformer = transformer.requires_grad_(False)
        config = transformer.config
        self.size: int = config.image_size
        bound = math.sqrt(6 / (3 * config.patch_size**2 + config.hidden_size))
        prompts = torch.empty(n_prompts, config.hidden_size)
        prompts.uniform_(-bound, bound, generator=generator)
        self.prompts = nn.Parameter(prompts)
        self._prompting = False
        for module in transformer.modules():
            if isinstance(module, nn.LayerNorm):
                module.requires_grad_(True)
        # Positions have been added when the first norm is done, and no layer has run;
        # transformers spells it so.
        transformer.vision_model.pre_layrnorm.register_forward_hook(self._insert)

    def forward(self, pixels: Tensor, prompted: bool = True) -> Tensor:
        """Image features, (n, width), not normalised."""
        self._prompting = prompted
        features: Tensor = self.transformer(pixel_values=pixels).image_embeds
        return features

    def _insert(self, module: nn.Module, inputs: Any, tokens: Tensor) -> Tensor:
        if not self._prompting:
            return tokens
        prompts = self.prompts.expand(len(tokens), -1, -1)
        return torch.cat([tokens[:, :1], prompts, tokens[:, 1:]], dim=1)

    def distorted_and_plain(
        self, images: Sequence[Image], random: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Features of distorted images, and of plain ones as the frozen model does."""
        plain = [plain_crop(image, self.size) for image in images]
        strong = [distorted(image, self.size, random) for image in images]
        with torch.no_grad():
            seen = self(self._pixels(plain), prompted=False)
        return self(self._pixels(strong)), seen

    def _pixels(self, images: Sequence[Image]) -> Tensor:
        return as_tensor(images).to(self.prompts.device)

    def tunable(self) -> dict[str, nn.Parameter]:
        """What tuning changes, by the names of the fitted state."""
        return {
            name.replace("transformer.", "norm.", 1): parameter
            for name, parameter in self.named_parameters()
            if parameter.requires_grad
        }

    @torch.no_grad()
    def encode(self, images: Images) -> NDArray[np.float32]:
        """Features of images, one at a time: the same bits in any company."""
        crops = (plain_crop(read_image(image), self.size) for image in images)
        rows = torch.cat([self(self._pixels([crop])) for crop in crops])
        encoded: NDArray[np.float32] = rows.cpu().numpy()
        return encoded
