"""Models from a directory by ``from_pretrained``, and errors without the hub.

No server of the hub is there to be asked: what is tested is all that comes before.
"""

import numpy as np
import pytest

from sagl import SAGL
from tests.conftest import QUICK


@pytest.fixture(scope="module")
def model(views):
    return SAGL(4, steps=40, search=QUICK, random_state=0).fit(views)


@pytest.fixture
def offline(monkeypatch):
    """What HF_HUB_OFFLINE=1 does, which is read when the library is imported."""
    name = "huggingface_hub.constants"
    constants = pytest.importorskip(name, reason="the extra 'hub'")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_a_directory_is_read_as_it_is(model, views, tmp_path):
    model.save(tmp_path / "run")
    for place in (tmp_path / "run", str(tmp_path / "run")):
        again = SAGL.from_pretrained(place, device="cpu")
        np.testing.assert_array_equal(again.predict(views), model.predict(views))
    with pytest.raises(ValueError, match="has no revision 'main'; leave it out"):
        SAGL.from_pretrained(tmp_path / "run", revision="main")


@pytest.mark.parametrize("name", ["somebody/digits", "no such place", "a/b/c"])
def test_what_cannot_be_reached_is_said_in_one_line(model, offline, name):
    for ask in (SAGL.from_pretrained, model.push_to_hub):
        with pytest.raises(ValueError, match="not reached on the Hugging Face") as said:
            ask(name)
        assert str(said.value).startswith(f"{name}: no directory here")
        assert "\n" not in str(said.value)


def test_a_failed_upload_leaves_nothing(model, offline, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="Hugging Face"):
        model.push_to_hub("somebody/digits")
    assert not list(tmp_path.iterdir())
