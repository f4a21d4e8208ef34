"""Models from a directory, to a server that answers as the hub does, and back."""

import threading

import numpy as np
import pytest

from sagl import SAGL
from sagl.hub import _FILES
from tests.conftest import QUICK
from tests.hub_server import HubServer


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


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The library of the hub asks a server here, which keeps what it is sent."""
    name = "huggingface_hub.constants"
    constants = pytest.importorskip(name, reason="the extra 'hub'")
    with HubServer(tmp_path / "hub") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        template = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        yield server
        server.shutdown()
        thread.join()


def test_what_is_pushed_comes_back(model, views, hub):
    model.rename({0: "the first"})
    address = model.push_to_hub("somebody/digits", token="hf_token")
    assert address == f"{hub.address}/somebody/digits"
    sent = {file.name for file in (hub.root / "somebody/digits").iterdir()}
    assert {"config.json", "README.md", "names.json"} < sent <= set(_FILES)
    again = SAGL.from_pretrained("somebody/digits", device="cpu")
    np.testing.assert_array_equal(again.predict(views), model.predict(views))
    assert again.cluster_name(0) == "the first"


def test_who_is_not_logged_in_is_told_how(model, hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    with pytest.raises(ValueError, match="log in: hf auth login") as said:
        model.push_to_hub("somebody/digits", token=False)
    assert "\n" not in str(said.value)
    with pytest.raises(ValueError, match="nobody/nothing: no directory here"):
        SAGL.from_pretrained("nobody/nothing")


def test_no_network_is_said_in_one_line(model, hub):
    hub.server_close()  # nobody listens there any more
    with pytest.raises(ValueError, match="check the name and the network"):
        model.push_to_hub("somebody/digits", token="hf_token")
