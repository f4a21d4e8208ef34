"""SAGL: clusters, representations and sparse graphs from several frozen views."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sagl._version import __version__

if TYPE_CHECKING:
    from sagl.estimator import SAGL, CollapseWarning, UncertainCountWarning
    from sagl.views import Views

__all__ = [
    "SAGL",
    "CollapseWarning",
    "UncertainCountWarning",
    "Views",
    "__version__",
]

# Loaded when first asked for, so that `sagl --help` need not wait for torch.
_HOMES = {
    "SAGL": "sagl.estimator",
    "CollapseWarning": "sagl.estimator",
    "UncertainCountWarning": "sagl.estimator",
    "Views": "sagl.views",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sagl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
