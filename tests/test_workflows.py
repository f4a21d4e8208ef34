"""The workflows call what is there, and test what pyproject.toml promises."""

import os
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.pages import ROOT, make_targets

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra 'docs'")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
with (ROOT / "pyproject.toml").open("rb") as file:
    PROJECT = tomllib.load(file)["project"]


# Extras that work on sagl itself does not need.
USERS = ("backbones", "datasets", "hub", "report", "sweep", "serve", "peers")
_seen: dict[str, set[str]] = {}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path):
    """Versions by name, as a constraints file has them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and line[0] != "#"]
    return {canonical(name): version for name, version in pairs}


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def steps(path):
    return [step for job in jobs(path).values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_are_targets_that_are_there(path):
    commands = [step["run"] for step in steps(path) if "run" in step]
    called = [line.split()[1:] for line in commands if line.startswith("make ")]
    assert called
    for words in called:
        assert {word for word in words if "=" not in word} <= make_targets()
    assert all("uses" in step or "run" in step for step in steps(path))


def test_every_supported_python_and_system_is_tested():
    matrix = jobs(ROOT / ".github/workflows/ci.yml")["test"]["strategy"]["matrix"]
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"]
    assert set(matrix["os"]) == {"ubuntu-latest", "macos-latest"}


def test_the_oldest_versions_are_those_that_are_allowed():
    files = jobs(ROOT / ".github/workflows/ci.yml")["versions"]["strategy"]["matrix"]
    for name in files["constraints"]:
        assert (ROOT / ".github" / name).is_file()
    oldest = pins(ROOT / ".github/constraints-oldest.txt")
    extras = PROJECT["optional-dependencies"]
    bounds = {}
    for text in (*PROJECT["dependencies"], *(r for e in USERS for r in extras[e])):
        name, _, version = text.partition(">=")
        if not name.startswith("sagl["):
            bounds[canonical(name)] = version
    assert {name: v.removesuffix(".*") for name, v in oldest.items()} == bounds


def installed(name, extras=()):
    """Name and version of a package here and, in turn, of all that it asks for."""
    package = distribution(name)
    found = {canonical(name): package}
    for text in package.requires or ():
        asked = Requirement(text)
        markers = [{"extra": extra} for extra in extras or [""]]
        if not asked.marker or any(map(asked.marker.evaluate, markers)):
            key = canonical(asked.name)
            if key not in _seen or asked.extras - _seen[key]:
                _seen[key] = _seen.get(key, set()) | asked.extras
                found |= installed(asked.name, asked.extras)
    return found


@pytest.mark.skipif(
    "CONSTRAINTS" in os.environ or sys.platform != "linux",
    reason="the pins are of Linux, and others than these were asked for",
)
def test_all_that_is_installed_is_pinned_for_every_python():
    """So that no later release of anything stops ``make demo``."""
    pinned = pins(ROOT / "constraints.txt")
    _seen.clear()
    try:
        here = installed("sagl", {"dev"})
    except PackageNotFoundError as error:
        pytest.skip(f"not all of the extra 'dev' is installed: {error}")
    del here["sagl"]
    assert not here.keys() - pinned.keys()
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    for name, package in here.items():
        asked = package.metadata["Requires-Python"]
        if package.version.partition("+")[0] == pinned[name]:
            assert not asked or oldest in SpecifierSet(asked), (name, asked)


def test_a_release_is_built_from_a_tag_and_published_without_a_password():
    path = ROOT / ".github/workflows/release.yml"
    publish = jobs(path)["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert "secrets." not in path.read_text()


def test_issue_forms_are_what_the_host_reads():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert path.stem == "config" or {"name", "description", "body"} <= set(form)


def test_scripts_can_be_run():
    for path in (ROOT / ".ci").iterdir():
        assert os.access(path, os.X_OK), path
