"""The models by which a run's samples became vectors, loaded once more.

The feature store of a run says which they were. A file cannot have code run: functions
of Python, and models in directories, whose place no file knows, are named by the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.features.backbones import Backbone, load_backbone, parse_backbones
from sagl.features.manifest import MANIFEST, Manifest, Plan, is_store
from sagl.features.samples import Kind, Unreadable
from sagl.run import FEATURES, SOURCE, check_part, read_config
from sagl.run_files import check_source
from sagl.schema import read_json

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
# What a model must say of itself as it did when the features were made.
_SAME = ("source", "model", "revision", "kind", "dim", "pooling", "normalized")


@dataclass(frozen=True)
class Backbones:
    """A model for each view of a run."""

    kind: Kind
    models: Mapping[str, Backbone]
    dtypes: Mapping[str, str]  # that features are rounded to, as they were for the fit

    @property
    def names(self) -> dict[str, str]:
        """What the models are called, by view."""
        return {view: model.name for view, model in self.models.items()}

    def embed(self, sample: Any) -> dict[str, NDArray[Any]]:
        """The views of one decoded sample, (1, dim) each."""
        views = {}
        for view, model in self.models.items():
            try:
                features: Any = model.embed([model.prepare(sample)])
            except Exception as error:  # of whatever library the model is
                reason = " ".join(str(error).split()) or type(error).__name__
                raise Unreadable(f"{view}: {reason[:200]}") from None
            if isinstance(features, torch.Tensor):
                features = features.detach().float().cpu().numpy()
            with np.errstate(over="ignore"):  # refused where views are checked
                views[view] = features.astype(self.dtypes[view])
        return views


def load_backbones(
    run: Path,
    widths: Mapping[str, int],
    given: Sequence[str] = (),
    *,
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Backbones | None:
    """The models of a run's views, or None where it does not know any.

    Parameters
    ----------
    run : path
    widths : mapping
        Of the run's views.
    given : sequence of str
        ``VIEW=BACKBONE`` where the run does not know it, or must not say it.
    """
    named = parse_backbones(given) if given else {}
    for view in named:
        if view not in widths:
            known = ", ".join(widths)
            raise ValueError(f"--backbone {view}=…: no such view; the run has {known}")
    plans = recorded(run, list(widths))
    if not named and not any(_is_model(plan) for plan in plans.values()):
        return None
    names = {view: named.get(view) or _name_of(view, plans) for view in widths}
    models = {}
    for view, name in names.items():
        model = load_backbone(name, device=device, trust_remote_code=trust_remote_code)
        _check_same(view, model, widths[view], plans.get(view))
        models[view] = model
    kinds = {model.kind for model in models.values()}
    if len(kinds) > 1:
        listed = ", ".join(f"{v}: {model.kind}" for v, model in models.items())
        raise ValueError(f"the backbones embed different kinds of samples: {listed}")
    dtypes = {v: plans[v].dtype if v in plans else "float32" for v in widths}
    return Backbones(kinds.pop(), models, dtypes)


def recorded(run: Path, views: Sequence[str]) -> dict[str, Plan]:
    """How the store of a run's features says that they were made, by view."""
    if not (run / SOURCE).is_file():
        return {}
    config = read_config(run)
    check_part(run, config, SOURCE)
    record = read_json(run / SOURCE)
    check_source(record)
    store = run / record.get("store", FEATURES)
    if "store" not in record or not is_store(store):
        return {}
    if store == run / FEATURES:
        check_part(run, config, f"{FEATURES}/{MANIFEST}")
    stored = Manifest.open(store).views
    return {view: stored[view].plan for view in views if view in stored}


def _is_model(plan: Plan) -> bool:
    return plan.backbone.get("source") in ("hf", "timm", "python")


def _name_of(view: str, plans: Mapping[str, Plan]) -> str:
    """What ``load_backbone`` takes, where a file may say it."""
    about: Mapping[str, Any] = plans[view].backbone if view in plans else {}
    source, model = about.get("source"), str(about.get("model"))
    revision, kind = str(about.get("revision")), about.get("kind")
    side = f"#{kind}" if kind in ("image", "text") else ""
    if source == "hf" and _COMMIT.fullmatch(revision) and _HUB_NAME.fullmatch(model):
        return f"hf:{model}@{revision}{side}"
    if source == "timm":
        return f"timm:{model}"
    if source == "python":
        fault = f"the function {model}, and a file cannot have code run"
    elif source == "hf":
        fault = f"the model {model}, in a directory that it does not know"
    else:
        fault = "no model"
    raise ValueError(
        f"view {view!r}: the run names {fault[:120]}; say which it is with --backbone "
        f"{view}=MODEL, or answer for vectors alone with --vectors"
    )


def _check_same(view: str, model: Backbone, width: int, plan: Plan | None) -> None:
    """Refuse a model that is not the one of the fit, as far as can be known."""
    if model.dim != width:
        raise ValueError(
            f"view {view!r} has {width} columns, and {model.name} gives {model.dim}; "
            "name the model that its features were made with"
        )
    if plan is None or not _is_model(plan):
        return
    now = model.describe()
    for name in _SAME:
        then = plan.backbone.get(name)
        if name in plan.backbone and now.get(name) != then:
            raise ValueError(
                f"view {view!r}: {model.name} is not the model of the fit: its {name} "
                f"is {now.get(name)!r}, it was {then!r}; name the same model"
            )
