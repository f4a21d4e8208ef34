"""``sagl compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sagl.cli.options import option, takes
from sagl.cli.study import Running, find_data, parse_value, running, study_arguments

if TYPE_CHECKING:
    from sagl.baselines.registry import Method
    from sagl.features.split import Source


@takes(find_data, study_arguments, running, out=Path("comparison"))
def compare(
    source: Source,
    arguments: dict[str, Any],
    runs: Running,
    methods: Annotated[
        str, option("all, or NAME,NAME,…; module:Class takes a class of your own.")
    ] = "all",
    param: Annotated[
        list[str] | None,
        option(
            "A parameter of one method, e.g. turtle:steps=1000. Repeat.",
            "--param",
            metavar="METHOD:NAME=VALUE",
        ),
    ] = None,
    looks: Annotated[int, option("Points of each curve of quality over time.")] = 8,
    class_names: Annotated[
        Path | None, option("One name per line, for zero-shot and LaFTer.")
    ] = None,
    text_encoder: Annotated[
        str | None, option("A CLIP directory or name, for zero-shot and LaFTer.")
    ] = None,
    text_view: Annotated[
        str | None, option("The view that belongs to the text encoder.")
    ] = None,
) -> None:
    """Run every method on the same views and tabulate how good and how fast it is.

    Labels only score, except in rows that say otherwise. Runs are kept in DIR: the same
    command takes up what was interrupted.
    """
    from sagl.experiments.compare import Comparison

    chosen = parse_methods(methods, param or [], class_names, text_encoder, text_view)
    del arguments["params"]  # each method has its own
    runs.run(Comparison(source, chosen, looks=looks, **arguments))


def parse_methods(
    names: str,
    params: list[str],
    class_names: Path | None,
    text_encoder: str | None,
    text_view: str | None,
) -> list[Method]:
    """The methods that the options name, with their parameters."""
    from dataclasses import replace

    from sagl.baselines.registry import METHODS, find_method

    wanted = list(METHODS) if names == "all" else names.split(",")
    chosen = [find_method(name.strip()) for name in wanted]
    more: dict[str, dict[str, Any]] = {method.name: {} for method in chosen}
    for text in params:
        name, key, value = _param(text)
        if name not in more:
            raise ValueError(f"--param {text}: {name!r} is not among the methods")
        more[name][key] = value
    if class_names is not None and text_encoder is not None:
        lines = class_names.read_text(encoding="utf-8").splitlines()
        extra = {
            "class_names": [line.strip() for line in lines if line.strip()],
            "text_encoder": text_encoder,
            "view": text_view,
        }
        for method in chosen:
            if "class names" in method.needs:
                more[method.name] |= extra
    return [replace(m, params={**m.params, **more[m.name]}) for m in chosen]


def _param(text: str) -> tuple[str, str, Any]:
    """``METHOD:NAME=VALUE``, the value as JSON if it is, else as text."""
    place, equals, value = text.partition("=")
    method, colon, name = place.rpartition(":")
    if not (equals and colon and method and name):
        raise ValueError(f"--param {text}: expected METHOD:NAME=VALUE")
    return method, name, parse_value(value)
