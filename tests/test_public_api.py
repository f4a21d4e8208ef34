"""What users call: every public name, its parameters and defaults, every option.

``tests/data/public_api.txt`` is what was promised. A change that is meant is written
there by ``python -m tests.test_public_api``, and read by whoever reviews it.
"""

import difflib
import importlib
import inspect
import pkgutil
from pathlib import Path

import typer

import sagl
from sagl.cli.main import app

PROMISED = Path(__file__).parent / "data" / "public_api.txt"


def public_modules():
    """All modules that say what is public in them."""
    yield sagl
    for info in pkgutil.walk_packages(sagl.__path__, "sagl."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if not private and not info.name.startswith("sagl.cli"):
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                yield module


def parameters(function):
    """Names, kinds and defaults; types may become more exact without harm."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of C
        return "(…)"
    plain = [
        p.replace(annotation=p.empty, default=_plain(p.default))
        for p in signature.parameters.values()
    ]
    return str(inspect.Signature(plain))


def _plain(default):
    """Plain values as they are; of all else, such as ``os.environ``, the type alone."""
    if default is inspect.Parameter.empty or default is None:
        return default
    if inspect.isroutine(default):
        return default.__name__
    plain = isinstance(default, bool | int | float | str | tuple | Path)
    return default if plain else f"<{type(default).__name__}>"


def lines_of(path, value):
    if inspect.isclass(value):
        yield f"{path}{parameters(value)}"
        for name in vars(value):  # what is inherited, its base promises
            member = getattr(value, name)
            if name.startswith("_") or name.endswith("_request"):  # scikit-learn's
                continue
            if inspect.isfunction(member) or inspect.ismethod(member):
                yield f"{path}.{name}{parameters(member)}"
            elif isinstance(member, property):
                yield f"{path}.{name}"
    elif inspect.isfunction(value) or inspect.isbuiltin(value):
        yield f"{path}{parameters(value)}"
    elif inspect.ismodule(value):
        yield f"{path}: module"
    else:
        yield f"{path}: {type(value).__name__}"


def options_of(command, path):
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from options_of(below, f"{path} {name}")
        return
    for option in command.params:
        names = "/".join([*option.opts, *option.secondary_opts])
        default = option.default
        default = str(default) if isinstance(default, Path) else repr(default)
        many = ", repeated" if getattr(option, "multiple", False) else ""
        needed = "required" if option.required else default
        yield f"{path} {names}: {needed}{many}"


def described():
    lines = []
    for module in public_modules():
        for name in module.__all__:
            if inspect.ismodule(module) and not hasattr(module, name):
                importlib.import_module(f"{module.__name__}.{name}")
            path = f"{module.__name__}.{name}"
            lines += lines_of(path, getattr(module, name))
    lines += options_of(typer.main.get_command(app), "$ sagl")
    return sorted(set(lines))


def test_nothing_public_changes_by_accident():
    promised = PROMISED.read_text(encoding="utf-8").splitlines()
    changes = [
        line
        for line in difflib.ndiff(promised, described())
        if line.startswith(("- ", "+ "))
    ]
    assert not changes, "\n".join(
        ["if this is meant: python -m tests.test_public_api", *changes]
    )


def test_dir_lists_what_is_public():
    assert {"SAGL", "Views", "__version__"} <= set(dir(sagl))
    assert not {"Any", "import_module", "TYPE_CHECKING"} & set(dir(sagl))
    for name in dir(sagl):
        assert getattr(sagl, name) is not None


def test_what_is_not_there_is_said_as_python_does():
    assert not hasattr(sagl, "sagl")


if __name__ == "__main__":
    PROMISED.write_text("\n".join(described()) + "\n", encoding="utf-8")
