"""Reading models: files, the hub, and what can be wrong with either."""

import http.server
import json
import shutil
import sys
import threading

import pytest
import torch

from sagl.features import pretrained
from sagl.features.backbones import load_backbone
from sagl.features.pretrained import (
    Place,
    find_place,
    load_config,
    load_tokenizer,
    optional_module,
)
from tests.baselines.shared_space import quiet_transformers
from tests.features.models import pictures, save_dinov2


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "dinov2"
    directory.mkdir()
    return directory, save_dinov2(directory)


class TestExtras:
    @pytest.mark.parametrize(
        ("name", "package"), [("transformers", "transformers"), ("PIL.Image", "pillow")]
    )
    def test_not_installed(self, monkeypatch, name, package):
        monkeypatch.setitem(sys.modules, name, None)
        cure = rf'^this needs {package}: pip install "sagl\[backbones\]" \('
        for kind in (ImportError, ValueError):  # the command line shows the second
            with pytest.raises(kind, match=cure):
                optional_module(name)

    def test_a_backbone_says_so(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(ValueError, match=r"this needs transformers: pip install"):
            load_backbone("dinov2-s")


class TestFiles:
    def test_transformers_talks_as_before(self, dinov2):
        log = quiet_transformers().utils.logging
        log.set_verbosity_info()
        log.enable_progress_bar()
        try:
            load_config(find_place(dinov2[0]))
            assert log.get_verbosity() == log.INFO
            assert log.is_progress_bar_enabled()
        finally:
            quiet_transformers()

    def test_older_weights_are_read_as_tensors(self, dinov2, tmp_path):
        directory = shutil.copytree(dinov2[0], tmp_path / "copy")
        (directory / "model.safetensors").unlink()
        torch.save(dinov2[1].state_dict(), directory / "pytorch_model.bin")
        first, second = (load_backbone(f"hf:{d}") for d in (dinov2[0], directory))
        prepared = [first.prepare(p) for p in pictures()]
        assert torch.equal(first.embed(prepared), second.embed(prepared))

    def test_older_weights_run_no_code(self, dinov2, tmp_path):
        class Evil:
            def __reduce__(self):
                return open, (str(tmp_path / "it ran"), "w")

        directory = shutil.copytree(dinov2[0], tmp_path / "copy")
        (directory / "model.safetensors").unlink()
        torch.save({"weights": Evil()}, directory / "pytorch_model.bin")
        with pytest.raises(ValueError, match="hold more than tensors, which is not"):
            load_backbone(f"hf:{directory}")
        assert not (tmp_path / "it ran").exists()

    def test_safetensors_are_preferred(self, dinov2, tmp_path):
        directory = shutil.copytree(dinov2[0], tmp_path / "copy")
        (directory / "pytorch_model.bin").write_bytes(b"nonsense")
        assert load_backbone(f"hf:{directory}").dim == 16


class _Hub(http.server.BaseHTTPRequestHandler):
    """Refuses as the Hugging Face hub does, or has one model."""

    model = None  # a directory
    commit = "0123456789abcdef0123456789abcdef01234567"

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        if "some/model" in self.path and type(self).model is not None:
            return self._serve(body)
        gated = "gated" in self.path
        code = "GatedRepo" if gated else "RepoNotFound"
        return self._refuse(403 if gated else 404, code)

    def _refuse(self, status, code):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self, body):
        if self.path.startswith("/api/"):
            found = json.dumps({"id": "some/model", "sha": self.commit, "siblings": []})
            return self._send(found.encode(), body)
        file = type(self).model / self.path.rpartition("/resolve/")[2].partition("/")[2]
        if not file.is_file():
            return self._refuse(404, "EntryNotFound")
        return self._send(file.read_bytes(), body)

    def _send(self, content, body):
        self.send_response(200)
        self.send_header("X-Repo-Commit", self.commit)
        self.send_header("ETag", f'"{hash(content):x}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this machine in place of the real one, and an empty cache."""
    quiet_transformers()
    from huggingface_hub import constants

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    place = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield
    server.shutdown()
    server.server_close()
    thread.join()


class TestTheHub:
    def test_a_gated_model(self, hub):
        with pytest.raises(
            ValueError,
            match=r"gated: .*co/some/gated-dino, then log in with: hf auth login",
        ):
            load_backbone("hf:some/gated-dino")

    def test_no_such_model(self, hub):
        with pytest.raises(ValueError, match="nowhere/dino: neither a directory here"):
            load_backbone("hf:nowhere/dino")

    def test_no_network(self, monkeypatch):
        quiet_transformers()
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(
            ValueError, match="hub cannot be reached; download the model"
        ):
            load_backbone("hf:nowhere/dino-that-nobody-has")

    @pytest.mark.slow
    def test_a_hub_that_does_not_answer(self, hub, monkeypatch, capfd):
        """It is asked several times; one line in the error, none on the way to it."""
        from huggingface_hub import constants

        nobody = "http://127.0.0.1:9"  # a port that nothing listens on
        monkeypatch.setattr(constants, "ENDPOINT", nobody)
        place = nobody + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
        with pytest.raises(ValueError, match="hub cannot be reached"):
            load_backbone("hf:some/model")
        assert capfd.readouterr().err == ""

    def test_the_reason_of_a_missing_file(self):
        class EntryNotFoundError(Exception):
            pass

        error = OSError("no config.json")
        error.__cause__ = EntryNotFoundError()
        said = pretrained._reason(error, Place("a/b", local=False))
        assert said == "a file of this model is missing on the hub: no config.json"

    def test_a_model_from_the_hub(self, hub, dinov2, monkeypatch):
        """Downloaded once; its revision is the commit; later it needs no network."""
        from huggingface_hub import constants

        monkeypatch.setattr(_Hub, "model", dinov2[0])
        first = load_backbone("hf:some/model")
        about = first.describe()
        assert (about["model"], about["revision"]) == ("some/model", _Hub.commit)
        prepared = [first.prepare(p) for p in pictures()]
        expected = load_backbone(f"hf:{dinov2[0]}").embed(prepared)
        assert torch.equal(first.embed(prepared), expected)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        again = load_backbone("hf:some/model")
        assert again.describe() == about
        assert torch.equal(again.embed(prepared), expected)


def test_a_tokenizer_without_its_files(dinov2):
    with pytest.raises(ValueError, match="dinov2: "):
        load_tokenizer(dinov2[0])
