"""SAGL with other settings, and what is refused of them."""

import pytest

from sagl.experiments.variants import distinct, resolved, rising, shown, variant


def test_settings_name_the_variant_and_come_before_the_parameters():
    method = variant({"gamma": 5.0, "gate": "none"}, {"gamma": 1.0, "steps": 20})
    assert method.name == "gamma=5,gate=none"
    assert method.params == {"gamma": 5.0, "gate": "none", "steps": 20}


def test_what_sagl_would_refuse_is_refused():
    assert resolved({"gamma": 3}, 4, 100).gamma == 3
    with pytest.raises(ValueError, match="gamma must be at least 0"):
        resolved({"gamma": -1}, 4, 100)
    with pytest.raises(
        ValueError, match=r"'gama' cannot be set here; there are alignment, "
    ):
        resolved({"gama": 1}, 4, 100)
    for name in ("n_clusters", "random_state", "checkpoint_dir"):
        with pytest.raises(ValueError, match=f"'{name}' cannot be set here"):
            resolved({name: 1}, 4, 100)


def test_values():
    assert rising("gamma", [5, 1, 2.5]) == [1.0, 2.5, 5.0]
    with pytest.raises(ValueError, match="gamma: 5 is given twice"):
        rising("gamma", [5, 5.0])
    with pytest.raises(ValueError, match="beta: 'x' is not a number"):
        rising("beta", ["x"])
    with pytest.raises(ValueError, match="gate: no value"):
        distinct("gate", [])
    assert [shown(v) for v in (None, 0.5, 3, "none")] == ["", "0.5", "3", "none"]
