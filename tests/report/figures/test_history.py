"""Figures of the training's history: losses and sparsity, from a real fit."""

import numpy as np
import pytest

from sagl import SAGL
from sagl.report.figures import draw_losses, draw_sparsity
from sagl.report.saving import words
from tests.conftest import clustered_views
from tests.report.figures.looked_at import check


@pytest.fixture(scope="module")
def history():
    views, _ = clustered_views()
    params = {"recipe": "network", "steps": 200, "tolerance": 0}
    return SAGL(4, random_state=0, **params).fit(views).history_


def test_losses_are_the_records(tmp_path, history):
    top, bottom = draw_losses(history, gamma=10, beta=1)
    steps = [record["step"] for record in history]
    [total] = top.lines
    assert total.get_xdata().tolist() == steps
    assert total.get_ydata().tolist() == [record["loss"] for record in history]
    for line, key in zip(
        bottom.lines, ("pseudo_label", "diversity", "alignment"), strict=True
    ):
        assert line.get_ydata().tolist() == [record[key] for record in history]
    texts = [text.get_text() for text in bottom.get_legend().get_texts()]
    assert texts == ["pseudo-label", "diversity (γ = 10)", "alignment (β = 1)"]
    check(top, tmp_path, unnamed=("x",))  # the upper panel shares the lower one's
    assert bottom.get_xlabel() == "optimiser step"


def test_sparsity_is_the_records(tmp_path, history):
    ax = draw_sparsity(history, ["wide", "_narrow"])
    for i, line in enumerate(ax.lines):
        expected = [100 * record["sparsity"][i] for record in history]
        np.testing.assert_allclose(line.get_ydata(), expected)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["wide", "_narrow"]
    assert ax.get_yscale() == "log"
    assert "wide from" in words(ax).alt
    check(ax, tmp_path)


def test_records_without_a_sparsity_are_passed_over(history):
    silent = [{k: v for k, v in r.items() if k != "sparsity"} for r in history]
    ax = draw_sparsity([*silent[:1], *history[1:]], ["a", "b"])
    assert ax.lines[0].get_xdata().tolist() == [r["step"] for r in history[1:]]
    with pytest.raises(ValueError, match="the history has no sparsity in it"):
        draw_sparsity(silent, ["a", "b"])


def test_a_loss_of_fewer_terms(history):
    fewer = [{k: v for k, v in r.items() if k != "diversity"} for r in history]
    top, bottom = draw_losses(fewer, gamma=10, beta=1)
    texts = [text.get_text() for text in bottom.get_legend().get_texts()]
    assert texts == ["pseudo-label", "alignment (β = 1)"]
    assert len(bottom.lines) == 2
    check(top, unnamed=("x",))


def test_one_record_is_seen(history):
    assert draw_sparsity(history[:1], ["a", "b"]).lines[0].get_marker() == "o"
    assert draw_losses(history[:1])[0].lines[0].get_marker() == "o"
    check(draw_losses(history[:1])[0], unnamed=("x",))


def test_bad_histories_are_refused(history):
    with pytest.raises(ValueError, match="the history is empty"):
        draw_losses([])
    with pytest.raises(ValueError, match="the history is empty"):
        draw_sparsity([], ["a"])
    broken = {k: v for k, v in history[0].items() if k not in ("loss", "alignment")}
    with pytest.raises(ValueError, match="record 1 of the history has no loss, align"):
        draw_losses([history[0], broken])
    with pytest.raises(ValueError, match="one number for each of 3 views"):
        draw_sparsity(history, ["a", "b", "c"])
