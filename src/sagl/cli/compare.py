"""``sagl compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import option, refuse_idle, takes
from sagl.cli.study import StudyOptions, parse_pairs, parse_value, study_options

if TYPE_CHECKING:
    from sagl.baselines.registry import Method


@takes(study_options, out=Path("comparison"))
def compare(
    options: StudyOptions,
    methods: str = option(
        "all",
        "all, or some by name; module:Class takes a class of your own.",
        metavar="NAME,…",
    ),
    param: list[str] | None = option(
        None,
        "A parameter of one method, e.g. turtle:steps=1000. Repeat.",
        "--param",
        metavar="METHOD:NAME=VALUE",
    ),
    looks: int = option(8, "Points of each curve of quality over time."),
    class_names: Path | None = option(
        None, "One name per line, for zero-shot and LaFTer."
    ),
    text_encoder: str | None = option(
        None, "A CLIP directory or name, for zero-shot and LaFTer."
    ),
    text_view: str | None = option(None, "The view that belongs to the text encoder."),
) -> None:
    """Run every method on the same views and tabulate how good and how fast it is.

    Labels only score, except in rows that say otherwise. Runs are kept in DIR: the same
    command takes up what was interrupted.

    Example: sagl compare --data pets --methods all --seeds 5 --out comparison
    """
    from sagl.experiments.compare import Comparison

    chosen = parse_methods(methods, param or [], class_names, text_encoder, text_view)
    options.run(Comparison, methods=chosen, looks=looks)


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
    form = "METHOD:NAME=VALUE"
    for place, value in parse_pairs("--param", params, form).items():
        method, _, name = place.rpartition(":")
        if not (method and name):
            raise ValueError(f"--param {place}={value}: expected {form}")
        if method not in more:
            raise ValueError(
                f"--param {place}={value}: {method!r} is not among the methods"
            )
        more[method][name] = parse_value(value)
    named = ("class_names", "text_encoder", "text_view")
    if not any("class names" in method.needs for method in chosen):
        refuse_idle("it is for zero-shot and lafter, and neither is run", *named)
    if class_names is None or text_encoder is None:
        refuse_idle("--class-names and --text-encoder go together", *named)
    else:
        lines = class_names.read_text(encoding="utf-8").splitlines()
        extra = {
            "class_names": [line.strip() for line in lines if line.strip()],
            "text_encoder": text_encoder,
            "view": text_view,
        }
        for known in chosen:
            if "class names" in known.needs:
                more[known.name] |= extra
    return [replace(m, params={**m.params, **more[m.name]}) for m in chosen]
