"""The competition: other methods with the same ``fit``, ``predict`` and ``labels_``."""

from sagl.baselines.base import Baseline, Watch
from sagl.baselines.cpp import CPP
from sagl.baselines.evoc import EVoC
from sagl.baselines.gmm import GMM
from sagl.baselines.icce import ICCE
from sagl.baselines.kmeans import KMeans
from sagl.baselines.lafter import LaFTer
from sagl.baselines.leiden import Leiden
from sagl.baselines.linear_probe import LinearProbe
from sagl.baselines.msrl import MSRL
from sagl.baselines.registry import METHODS, Method, find_method, register
from sagl.baselines.scan import SCAN
from sagl.baselines.spectral import Spectral
from sagl.baselines.temi import TEMI
from sagl.baselines.transductive import Transductive
from sagl.baselines.turtle import TURTLE
from sagl.baselines.umap_hdbscan import UMAPHDBSCAN
from sagl.baselines.zero_shot import ZeroShot

__all__ = [
    "CPP",
    "GMM",
    "ICCE",
    "METHODS",
    "MSRL",
    "SCAN",
    "TEMI",
    "TURTLE",
    "UMAPHDBSCAN",
    "Baseline",
    "EVoC",
    "KMeans",
    "LaFTer",
    "Leiden",
    "LinearProbe",
    "Method",
    "Spectral",
    "Transductive",
    "Watch",
    "ZeroShot",
    "find_method",
    "register",
]
