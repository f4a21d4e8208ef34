"""The parameters of ``SAGL`` as they are declared there: name, type, default and help.

They are read from the source of the estimator, signature and docstring, so that each is
written once and the command line answers ``--help`` without waiting for torch.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["Parameter", "option_of", "sagl_parameters"]

# What a command or a study decides itself, or what has no place on a command line.
_NOT_FREE = (
    *("n_clusters", "random_state", "device", "callbacks", "verbose", "view_sizes"),
    "search",
    *("checkpoint_dir", "checkpoint_seconds"),
)


class Parameter(NamedTuple):
    """One parameter."""

    name: str
    annotation: str  # e.g. "float | None"
    default: Any
    values: tuple[str, ...]  # those that there are, if the docstring lists them
    help: str

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number, or may be one."""
        return "int" in self.annotation.split(" | ")


@cache
def sagl_parameters() -> dict[str, Parameter]:
    """Those that a user may set, by name, in their order.

    >>> sagl_parameters()["gamma"].annotation
    'float | None'
    """
    source = files("sagl").joinpath("estimator.py").read_text("utf-8")
    (estimator,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "SAGL"
    )
    (init,) = (
        node
        for node in estimator.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    )
    described = _described(ast.get_docstring(estimator) or "")
    parameters = {}
    for argument, default in zip(
        init.args.kwonlyargs, init.args.kw_defaults, strict=True
    ):
        name = argument.arg
        if name in _NOT_FREE or argument.annotation is None or default is None:
            continue
        values, text = described.get(name, ((), ""))  # a test sees to its help
        parameters[name] = Parameter(
            name,
            ast.unparse(argument.annotation),
            ast.literal_eval(default),
            values,
            text,
        )
    return parameters


def option_of(name: str) -> str:
    """What a parameter is called on the command line.

    >>> option_of("n_restarts"), option_of("batch_size")
    ('--restarts', '--batch-size')
    """
    return "--" + name.removeprefix("n_").replace("_", "-")


def _described(docstring: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Values and text of each parameter in a numpydoc section *Parameters*."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", docstring, re.M | re.S)
    described = {}
    for entry in re.split(r"\n(?=\S)", section[1] if section else ""):
        head, *lines = entry.split("\n")
        names, _, form = head.partition(" : ")
        listed = re.match(r"\{(.*?)\}", form)
        values = re.findall(r'"(.*?)"', listed[1]) if listed else []
        text = " ".join(line.strip() for line in lines).replace("``", "")
        for name in names.split(", "):
            described[name] = (tuple(values), text)
    return described
