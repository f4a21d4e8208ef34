"""Constants chosen on a half of the sets: what the choice is worth on the others."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import left_out
from left_out import DEFAULT, choices, complete, gained, halves, settings
from sagl import SAGL


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """One set of four overlapping groups in two views."""
    root, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(4, 14))
    for part in ("train", "test"):
        place = root / "groups" / part
        place.mkdir(parents=True)
        labels = rng.permutation(np.arange(80) % 4)
        x = (centres[labels] + rng.normal(size=(80, 14))).astype(np.float32)
        np.save(place / "labels.npy", labels)
        np.save(place / "a.npy", x[:, :8])
        np.save(place / "b.npy", x[:, 8:])
    meta = {"views": ["a", "b"], "classes": 4, "train": 80}
    (root / "groups" / "meta.json").write_text(json.dumps(meta))
    return root


def run_of(task, setting, acc, **more):
    place = {"set": f"set {task}", "views": "a", "nmi": acc, **more}
    return {"task": task, "seed": 0, "setting": setting, "acc": acc, **place}


def test_halves_keep_units_together_and_change():
    units = ["pets", "wiki", "pets", "cub", "digits", "wiki", "news"]
    first = halves(units, 200)
    assert first.shape == (200, 7)
    np.testing.assert_array_equal(first[:, 0], first[:, 2])
    np.testing.assert_array_equal(first[:, 1], first[:, 5])
    counts = first[:, [0, 1, 3, 4, 6]].sum(axis=1)
    assert set(counts[::2]) == {2}
    assert set(counts[1::2]) == {3}
    assert 0.4 < first.mean() < 0.6
    np.testing.assert_array_equal(first, halves(units, 200))
    assert not np.array_equal(first, halves(units, 200, seed=1))


def test_choice_on_one_half_is_paid_on_the_other():
    gains = np.array([[0.0, 0.10, 0.0], [0.0, 0.30, 0.0], [0.0, -0.4, 0.05]])
    first = np.array([[True, True, False], [False, False, True], [True, False, True]])
    ours, theirs, best = choices(gains, first)
    assert best.tolist() == [1, 2, 2]
    np.testing.assert_allclose(ours, [0.20, 0.05, 0.025])
    np.testing.assert_allclose(theirs, [-0.4, 0.0, 0.0])


def test_where_nothing_is_better_the_default_stays():
    gains = np.array([[0.0, -0.1, 0.0], [0.0, -0.2, 0.0]])
    ours, theirs, best = choices(gains, np.array([[True, False]]))
    assert (ours[0], theirs[0], best[0]) == (0, 0, 0)


def test_gains_are_over_the_default_of_the_same_run():
    runs = [run_of(0, DEFAULT, 0.5), run_of(0, "vote=2.0", 0.6, nmi=0.7)]
    np.testing.assert_allclose(
        gained(complete(runs, [DEFAULT, "vote=2.0"]), [DEFAULT, "vote=2.0"]),
        [[0, 0.15]],
    )


def test_tasks_without_every_setting_do_not_count():
    runs = [run_of(0, DEFAULT, 0.5), run_of(1, DEFAULT, 0.5), run_of(1, "vote=2.0", 1)]
    [place] = complete(runs, [DEFAULT, "vote=2.0"])
    assert place[DEFAULT]["task"] == 1


def test_table_tells_luck_from_worth():
    """One value helps on every set, another on one set alone."""
    runs = []
    for n in range(8):
        runs += [run_of(n, DEFAULT, 0.5), run_of(n, "vote=0.5", 0.6)]
        runs += [run_of(n, "vote=2.0", 0.5)]
        runs += [run_of(n, "trust=0.25", 0.9 if n == 0 else 0.48)]
        runs += [run_of(n, "trust=1.0", 0.5)]
    runs.append(run_of(8, DEFAULT, 0.5))
    rows = {
        line.split(" | ")[0].strip("| "): line.split(" | ")[1:]
        for line in left_out.table(runs, ["vote", "trust"]).splitlines()[:6]
        if line.startswith("| ")
    }
    assert rows["vote"][:4] == ["8", "+10.00 ± 0.00", "+10.00 ± 0.00", "0.00"]
    assert "vote=0.5 (100%)" in rows["vote"][4]
    ours, theirs = (float(cell.split(" ")[0]) for cell in rows["trust"][1:3])
    assert ours > 3
    assert theirs < 0


def test_the_default_is_among_the_settings():
    assert list(settings(["vote"])) == [DEFAULT, "vote=0.5", "vote=2.0"]
    assert settings(["vote"])[DEFAULT] == {}


@pytest.mark.parametrize("constant", left_out.CONSTANTS)
def test_a_constant_is_moved_alone(constant):
    default = SAGL(3, random_state=0).resolved(100, 3).as_dict()
    default |= default.pop("search")
    for params in list(settings([constant]).values())[1:]:
        moved = SAGL(3, random_state=0, **params).resolved(100, 3).as_dict()
        moved |= moved.pop("search")
        assert [k for k in default if default[k] != moved[k]] == [constant]


def test_a_search_gone_through_again_finds_the_same(directory):
    """A setting that the search does not depend on, after the default and alone."""
    default, free = (
        {"task": 0, "seed": 0, "setting": name}
        for name in (DEFAULT, "cluster_sizes=any")
    )
    left_out.run(directory, default)
    again = left_out.run(directory, free)
    left_out._KEPT.of(-1, 0)
    alone = left_out.run(directory, free)
    assert again | {"seconds": 0} == alone | {"seconds": 0}
    assert again["sizes"] == "any"
