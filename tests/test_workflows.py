"""The workflows call what is there, and test what pyproject.toml promises."""

import os
import re
import tomllib

import pytest

from tests.pages import ROOT, make_targets

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra 'docs'")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
with (ROOT / "pyproject.toml").open("rb") as file:
    PROJECT = tomllib.load(file)["project"]


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
    pins = (ROOT / ".github/constraints-oldest.txt").read_text()
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+?)(?:\.\*)?$", pins, re.MULTILINE))
    assert [f"{name}>={version}" for name, version in oldest.items()] == PROJECT[
        "dependencies"
    ]


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
