"""What the README shows is run, in order, in an empty directory."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import clustered_views

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_python_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks("python")
    names: dict[str, object] = {}
    for code in blocks("python"):  # each goes on where the one before ended
        exec(compile(code, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert float(re.search(r"ACC (\S+)", out)[1]) > 0.5
    assert names["fewer"].n_clusters_ == 9
    assert names["more"].n_clusters_ == 11


LOOKS = """
import numpy as np

def colours(pictures):
    return np.stack([np.asarray(p.resize((2, 2))).ravel() / 255 for p in pictures])

def shapes(pictures):
    grey = [p.convert("L").resize((6, 6)) for p in pictures]
    return np.stack([np.asarray(p).ravel() for p in grey])
"""


def write_photos(directory):
    """A folder of small pictures, and a module with two ways to look at them."""
    (directory / "looks.py").write_text(LOOKS)
    (directory / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(60):
        pixels = rng.integers(0, 60, size=(8, 8, 3)) + 19 * (i % 10)
        picture = Image.fromarray(pixels.astype(np.uint8))
        picture.save(directory / "photos" / f"{i}.png")


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
    write_photos(tmp_path)
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        # No model can be downloaded here: two functions stand in for them.
        command = command.replace("dinov2-s", "looks:colours#image")
        command = command.replace("clip-b32", "looks:shapes#image")
        program, *arguments = shlex.split(command)
        assert program == "sagl"
        if arguments[0] == "fit":
            arguments += ["--steps", "50", "--quiet"]  # the same, but quick
        if arguments[0] == "compare":
            arguments += ["--methods", "kmeans", "--seeds", "1"]
        subprocess.run(
            [sys.executable, "-m", "sagl", *arguments], cwd=tmp_path, check=True
        )
    assert "<html" in (tmp_path / "found" / "report.html").read_text()
    assert len((tmp_path / "clusters.csv").read_text().splitlines()) == 101
    assert "<graphml" in (tmp_path / "graph.graphml").read_text()
    assert "| k-means |" in (tmp_path / "comparison" / "table.md").read_text()


def test_the_two_commands_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+) ", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
