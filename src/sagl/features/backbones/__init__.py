"""Pretrained models that turn a picture or a text into a row of features."""

from sagl.features.backbones.base import Backbone
from sagl.features.backbones.callables import FunctionBackbone
from sagl.features.backbones.known import KNOWN, KnownBackbone
from sagl.features.backbones.npy import SavedFeatures, read_saved
from sagl.features.backbones.registry import BackboneName, load_backbone, parse_name

__all__ = [
    "KNOWN",
    "Backbone",
    "BackboneName",
    "FunctionBackbone",
    "KnownBackbone",
    "SavedFeatures",
    "load_backbone",
    "parse_name",
    "read_saved",
]
