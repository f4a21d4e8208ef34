"""What README and the pages of docs/ show, run as a reader would.

The blocks of a page go on where the one before ended: ``python`` in one namespace,
``bash`` line by line. Command lines of sagl run in this process. What would need a
network is checked for being there: extras that pip is to install, make targets.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sagl.cli.main import run
from tests.conftest import clustered_views, quick_searches

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHOWN = ("text", "")  # what a program prints
# The same, but quick: studies have one small method, reports no t-SNE.
_QUICKER = {
    "compare": ["--methods", "kmeans", "--seeds", "1", "--quiet"],
    "sweep": ["--param", "refine=false", "--param", "steps=10", "--quiet"],
    "report": ["--no-tsne", "--quiet"],
    "extract": ["--workers", "1", "--quiet"],
    "fit": ["--quiet"],
    "demo": [],
}
# No model can be downloaded here: functions stand in for them.
_MODELS = {
    "dinov2-s": "dinov2-s=looks:colours#image",
    "clip-b32": "clip-b32=looks:shapes#image",
    "minilm": "minilm=looks:letters#text",
    "e5-small": "e5-small=looks:words#text",
}
_LOOKS = """
import numpy as np

def colours(pictures):
    return np.stack([np.asarray(p.resize((2, 2))).ravel() / 255 for p in pictures])

def shapes(pictures):
    grey = [p.convert("L").resize((6, 6)) for p in pictures]
    return np.stack([np.asarray(p).ravel() for p in grey])

def letters(texts):
    return np.array([[t.count(letter) for letter in "aeioutrns"] for t in texts])

def words(texts):
    known = ("ship", "bread", "song", "sail", "oven", "verse", "tree", "leaf")
    return np.array([[t.count(word) + len(t) / 99 for word in known] for t in texts])
"""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of each block of code, in order."""
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def run_page(page, folder, monkeypatch):
    """Run every block in a folder that holds what the page speaks of; its names."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "looks", raising=False)
    names = {"__name__": "page"}
    with quick_searches():
        for language, code in blocks(page):
            if language == "python":
                exec(compile(code, page.name, "exec"), names)
            elif language == "bash":
                for line in code.replace("\\\n", " ").splitlines():
                    run_line(line, monkeypatch)
            else:
                assert language in _SHOWN, f"{page.name} has a block of {language}"
    return names


def run_line(line, monkeypatch):
    """One line for the shell."""
    program, *words = shlex.split(line)
    if program == "torchrun":  # as one process; several are tested elsewhere
        program, words = "sagl", words[words.index("sagl") + 1 :]
    if program == "pip":
        check_install(words)
    elif program == "make":
        assert words[0] in make_targets()
    elif program == "source":
        assert words == [".venv/bin/activate"]
    else:
        assert program == "sagl", line
        run_command(words, monkeypatch)


def run_command(words, monkeypatch):
    words = [_MODELS.get(word, word) for word in words]
    monkeypatch.setattr(sys, "argv", ["sagl", *words, *_QUICKER.get(words[0], [])])
    with warnings.catch_warnings(), pytest.raises(SystemExit) as end:
        run()
    assert not end.value.code, words


def check_install(words):
    """``pip install``: the constraints are there, and so is every extra."""
    assert words[:3] == ["install", "-c", "constraints.txt"]
    extras = re.findall(r"\[(.*?)\]", words[-1])
    assert {e for group in extras for e in group.split(",")} <= known_extras()


def known_extras():
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def make_targets():
    makefile = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^(\w[\w-]*):", makefile, re.MULTILINE))


def write_files(folder):
    """Features, tables, pictures and texts by the names that the pages use."""
    views, labels = clustered_views(n_clusters=10, n_samples=400)
    named = {"dino": views["wide"], "clip": views["narrow"]}
    for name, array in {**named, "a": views["wide"], "b": views["narrow"]}.items():
        np.save(folder / f"{name}.npy", array[:300])
        np.save(folder / f"new-{name}.npy", array[300:])
    np.savetxt(folder / "labels.csv", labels[300:], fmt="%d")
    for part, rows in (("train", slice(0, 300)), ("test", slice(300, None))):
        (folder / "pets" / part).mkdir(parents=True)
        np.save(folder / "pets" / part / "labels.npy", labels[rows])
        for name, array in named.items():
            np.save(folder / "pets" / part / f"{name}.npy", array[rows])
    for model, array in (("clipvitL14", "clip"), ("dinov2", "dino")):
        (folder / "data/representations" / model).mkdir(parents=True)
        saved = folder / "data/representations" / model / "pets_train.npy"
        np.save(saved, named[array][:300])
    for name in ("a", "b"):  # with ids, each in an order of its own
        array = np.load(folder / f"{name}.npy")
        order = np.random.default_rng(ord(name)).permutation(len(array))
        columns = ",".join(f"x{i}" for i in range(array.shape[1]))
        rows = [f"s{i}," + ",".join(map(str, array[i])) for i in order]
        (folder / f"{name}.csv").write_text("\n".join([f"id,{columns}", *rows]))
    write_samples(folder)


def write_samples(folder):
    """Pictures and texts, and functions that look at them."""
    (folder / "looks.py").write_text(_LOOKS)
    rng = np.random.default_rng(0)
    for place, count in (("photos", 60), ("new-photos", 20)):
        (folder / place).mkdir()
        for i in range(count):
            pixels = rng.integers(0, 60, size=(8, 8, 3)) + 19 * (i % 10)
            picture = Image.fromarray(pixels.astype(np.uint8))
            picture.save(folder / place / f"{i}.png")
    subjects = ("ship", "bread", "song", "sail", "oven", "verse", "tree", "leaf")
    texts = [
        f"{a} and {b} and {c}" for a in subjects for b in subjects for c in subjects[:4]
    ]
    (folder / "reviews.csv").write_text("\n".join(["text", *texts]))
