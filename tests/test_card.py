"""The model card that each run holds."""

import re

import pytest

from sagl import SAGL
from sagl.card import CARD, card
from tests.conftest import QUICK


@pytest.fixture(scope="module")
def model(views):
    return SAGL(4, steps=40, search=QUICK, random_state=0).fit(views)


def test_it_says_what_the_run_is_and_how_it_is_used(model, views, tmp_path):
    model.save(tmp_path / "run")
    text = (tmp_path / "run" / CARD).read_text(encoding="utf-8")
    assert text.startswith("---\nlibrary_name: sagl\n")
    assert "# 4 clusters of 240 samples" in text
    assert "wide (12 columns), narrow (6 columns)" in text
    sizes = [int(n) for n in re.findall(r"^\| \d \| .* \| (\d+) \| ", text, re.M)]
    assert sizes == [row.size for row in model.clusters()]
    assert f"| 4 | {model.layers_[0].stability:.3f} |" in text or len(model.layers_) > 1
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    names = {"views": views}
    exec(code.replace('"."', repr(str(tmp_path / "run"))), names)
    assert (names["model"].labels_ == model.labels_).all()


def test_names_are_no_markup(model):
    named = SAGL(4, steps=40, search=QUICK, random_state=0)
    named._take(model._model)
    named.rename({1: "a|b <img src=x> [x](http://y)"})
    line = next(x for x in card(named._model).splitlines() if x.startswith("| 1 |"))
    assert r"a\|b \<img src=x\> \[x\](http://y)" in line


def test_a_readme_that_is_there_stays(model, tmp_path):
    (tmp_path / CARD).write_text("mine")
    model.save(tmp_path)
    assert (tmp_path / CARD).read_text() == "mine"
    assert (SAGL.load(tmp_path).labels_ == model.labels_).all()
