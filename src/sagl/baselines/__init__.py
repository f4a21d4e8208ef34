"""The competition: other methods with the same ``fit``, ``predict`` and ``labels_``."""

from sagl.baselines.base import Baseline, Watch
from sagl.baselines.cpp import CPP
from sagl.baselines.kmeans import KMeans
from sagl.baselines.lafter import LaFTer
from sagl.baselines.linear_probe import LinearProbe
from sagl.baselines.msrl import MSRL
from sagl.baselines.registry import METHODS, Method, find_method, register
from sagl.baselines.scan import SCAN
from sagl.baselines.temi import TEMI
from sagl.baselines.turtle import TURTLE
from sagl.baselines.zero_shot import ZeroShot

__all__ = [
    "CPP",
    "METHODS",
    "MSRL",
    "SCAN",
    "TEMI",
    "TURTLE",
    "Baseline",
    "KMeans",
    "LaFTer",
    "LinearProbe",
    "Method",
    "Watch",
    "ZeroShot",
    "find_method",
    "register",
]
