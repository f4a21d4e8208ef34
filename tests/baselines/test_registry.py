"""Methods by name, and new ones."""

import pytest

from sagl.baselines import METHODS, Method, find_method, register
from sagl.experiments.compare import Comparison
from sagl.features.split import find_source
from tests.experiments.small_runs import write_split

TOY = "tests.baselines.toy:Nearest"


def test_a_new_method_is_a_file_and_a_line(tmp_path, monkeypatch):
    source = find_source(write_split(tmp_path / "split"))
    monkeypatch.setattr("sagl.baselines.registry.METHODS", dict(METHODS))
    register(Method("nearest", TOY, "Nearest"))
    comparison = Comparison(
        source, [find_method("nearest")], tmp_path, seeds=1, looks=2
    )
    comparison.run()
    (row, *_) = comparison.rows()
    assert row.title == "Nearest"
    assert row.mean["acc"] == 1


def test_unknown_names_are_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="no method 'kmean'; there are sagl, "):
        find_method("kmean")
    with pytest.raises(ValueError, match="no class 'nowhere:Toy'"):
        find_method("nowhere:Toy").load()
    with pytest.raises(
        ValueError, match="'os:system' is no class with fit and predict"
    ):
        find_method("os:system").load()


def test_all_registered_classes_exist():
    for method in METHODS.values():
        assert hasattr(method.load(), "fit"), method.name
