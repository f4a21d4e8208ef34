"""SAGL with other settings: methods of a comparison, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sagl.baselines.registry import METHODS, Method
from sagl.estimator import SAGL
from sagl.settings import Settings

# What a comparison decides itself, or what has no place in a process of its own.
_NOT_FREE = (
    *("n_clusters", "random_state", "device", "callbacks", "verbose", "view_sizes"),
    *("checkpoint_dir", "checkpoint_seconds"),
)


def variant(settings: Mapping[str, Any], params: Mapping[str, Any]) -> Method:
    """SAGL with ``params`` and, before them, ``settings``, which name the method."""
    name = ",".join(f"{key}={shown(value)}" for key, value in settings.items())
    return Method(name, METHODS["sagl"].path, name, {**params, **settings})


def resolved(params: Mapping[str, Any], n_clusters: int, n_samples: int) -> Settings:
    """The complete settings; what SAGL would refuse is refused here."""
    for name in params:
        if name in _NOT_FREE or name not in PARAMETERS:
            free = ", ".join(sorted(PARAMETERS - set(_NOT_FREE)))
            raise ValueError(f"{name!r} cannot be set here; there are {free}")
    return SAGL(n_clusters, **params).resolved(n_samples)


PARAMETERS = frozenset(SAGL(2).get_params(deep=False))


def distinct(name: str, values: Iterable[Any]) -> list[Any]:
    """The values of a setting, refused if there is none or one of them twice."""
    found = list(values)
    if not found:
        raise ValueError(f"{name}: no value; give at least one")
    for i, value in enumerate(found):
        if value in found[:i]:
            raise ValueError(f"{name}: {shown(value)} is given twice")
    return found


def rising(name: str, values: Sequence[float]) -> list[float]:
    """Numbers of a setting in order."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}: {value!r} is not a number")
    return sorted(float(value) for value in distinct(name, values))


def shown(value: Any) -> str:
    """A value as it is written in a table."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
