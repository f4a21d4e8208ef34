"""A CLIP image encoder with learnable tokens: what LaFTer tunes on pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sagl.baselines.features import State
from sagl.baselines.pictures import Pictures, as_tensor, plain_crop
from sagl.features.pretrained import load_model

_CLASSES = {
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
}
_NORM = "norm."


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
        self.prompts = nn.Parameter(
            prompts.uniform_(-bound, bound, generator=generator)
        )
        for norm in self._norms().values():
            norm.requires_grad_(True)
        self._prompting = False
        # Positions have been added when the first norm is done, and no layer has run.
        _first_norm(transformer).register_forward_hook(self._insert)

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

    def learned(self) -> State:
        """What tuning changes, on the CPU."""
        tensors = {"prompts": self.prompts}
        tensors |= {_NORM + name: p for name, p in self._norms().items()}
        return {name: t.detach().cpu() for name, t in tensors.items()}

    @torch.no_grad()
    def adopt(self, state: State) -> None:
        """Take over what ``learned`` gave."""
        self.prompts.copy_(state["prompts"])
        for name, parameter in self._norms().items():
            parameter.copy_(state[_NORM + name])

    def _norms(self) -> dict[str, nn.Parameter]:
        return {
            f"{name}.{which}": parameter
            for name, module in self.transformer.named_modules()
            if isinstance(module, nn.LayerNorm)
            for which, parameter in module.named_parameters()
        }

    @torch.no_grad()
    def encode(self, pictures: Pictures) -> NDArray[np.float32]:
        """Features of pictures, one at a time: the same bits in any company."""
        device = self.prompts.device
        rows = [
            self(as_tensor([plain_crop(pictures[i], self.size)]).to(device))
            for i in range(len(pictures))
        ]
        encoded: NDArray[np.float32] = torch.cat(rows).cpu().numpy()
        return encoded


def load_encoder(
    source: str | Path,
    width: int,
    n_prompts: int,
    generator: torch.Generator,
    device: torch.device,
) -> PromptedEncoder:
    """A CLIP vision transformer with fresh prompts, its features of that width."""
    transformer = load_model(source, _CLASSES)
    if transformer.config.projection_dim != width:
        raise ValueError(
            f"{source} makes image features of width "
            f"{transformer.config.projection_dim}, the texts have {width}; both must "
            "come from the same model"
        )
    return PromptedEncoder(transformer, n_prompts, generator).to(device)


def _first_norm(transformer: nn.Module) -> nn.Module:
    """The norm between the embeddings and the layers."""
    for name, module in transformer.named_modules():
        # transformers spells it pre_layrnorm
        if isinstance(module, nn.LayerNorm) and name.split(".")[-1].startswith("pre_"):
            return module
    raise ValueError(
        "the image encoder has no layer norm before its layers, as CLIP has"
    )
