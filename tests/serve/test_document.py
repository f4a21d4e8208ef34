"""What docs/serving.md shows is run, against a run that is served."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sagl import SAGL, Views
from tests.serve.processes import ROOT, serving, stopped

TEXT = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 5)) * 3
    rows = centres[np.arange(120) % 3] + rng.normal(size=(120, 5))
    views = Views({"dino": rows[:, :3], "clip": rows[:, 3:]})
    for name, array in views.items():
        np.save(f"{name}.npy", array)
    model = SAGL(3, random_state=0).fit(views)
    model.rename({0: "cats"}).save("run")
    (shell,), (code,) = blocks("bash"), blocks("python")
    with serving(Path("run")) as (address, process):
        shell, code = (text.replace(ADDRESS, address) for text in (shell, code))
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
        answer = json.loads(done.stdout)
        assert len(answer["labels"]) == 1
        assert len(answer["neighbours"][0]) <= 2
        exec(compile(code, "serving.md", "exec"), {})
        expected = model.predict(views, agreement=0.9).tolist()
        assert capsys.readouterr().out == f"{expected[:10]}\n"
        assert stopped(process)[0] == 0


def test_the_answer_that_it_shows_has_the_fields_that_there_are():
    shown = re.search(r"\n    (\{\"labels\".*?\]\])\}\n", TEXT, re.DOTALL)[1]
    assert set(re.findall(r'"(\w+)":', shown)) == {
        *("labels", "names", "confidence", "neighbours"),
        *("sample", "cluster", "weight"),
    }


@pytest.mark.parametrize("place", ["images", "texts", "tensors"])
def test_paths_are_named(place):
    assert f"`POST /predict/{place}`" in TEXT
