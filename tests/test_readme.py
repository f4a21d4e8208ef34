"""What the README shows is run, in order, in an empty directory."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import clustered_views

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_python_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks("python")
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) > 0.5


def test_command_line_examples(tmp_path):
    views, labels = clustered_views(n_clusters=10, n_samples=400)
    renamed = {"dino": views["wide"], "clip": views["narrow"]}
    for name, array in renamed.items():
        np.save(tmp_path / f"{name}.npy", array[:300])
        np.save(tmp_path / f"new-{name}.npy", array[300:])
    np.savetxt(tmp_path / "labels.csv", labels[300:], fmt="%d")
    for part, rows in (("train", slice(0, 300)), ("test", slice(300, None))):
        (tmp_path / "pets" / part).mkdir(parents=True)
        np.save(tmp_path / "pets" / part / "labels.npy", labels[rows])
        for name, array in renamed.items():
            np.save(tmp_path / "pets" / part / f"{name}.npy", array[rows])
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "sagl"
        if arguments[0] == "fit":
            arguments += ["--steps", "50", "--quiet"]  # the same, but quick
        if arguments[0] == "compare":
            arguments += ["--methods", "kmeans", "--seeds", "1"]
        subprocess.run(
            [sys.executable, "-m", "sagl", *arguments], cwd=tmp_path, check=True
        )
    assert len((tmp_path / "clusters.csv").read_text().splitlines()) == 101
    assert "| k-means |" in (tmp_path / "comparison" / "table.md").read_text()


def test_the_two_commands_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+) ", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
