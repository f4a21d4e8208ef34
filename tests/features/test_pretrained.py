"""Reading models: files, the hub, and what can be wrong with either."""

import errno
import http.server
import json
import shutil
import sys
import threading
from contextlib import suppress
from functools import partial

import pytest
import torch

from sagl.features.backbones import load_backbone
from sagl.features.pretrained import load_model, reading
from tests.baselines.shared_space import quiet_transformers
from tests.features.models import pictures, save_dinov2


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "dinov2"
    directory.mkdir()
    return directory, save_dinov2(directory)


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"this needs transformers: pip install"):
        load_backbone("dinov2-s")


class TestFiles:
    def test_transformers_talks_as_before(self, dinov2):
        log = quiet_transformers().utils.logging
        log.set_verbosity_info()
        log.enable_progress_bar()
        try:
            with reading(dinov2[0]):
                assert log.get_verbosity() == log.ERROR
                assert not log.is_progress_bar_enabled()
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
        with pytest.raises(ValueError, match="hold more than tensors"):
            load_backbone(f"hf:{directory}")
        assert not (tmp_path / "it ran").exists()

    @pytest.mark.parametrize("part", ["AutoConfig", "AutoModel", "AutoImageProcessor"])
    def test_code_that_a_model_asks_for_is_not_run(self, dinov2, tmp_path, part):
        """Nor is anybody asked whether it may."""
        directory = shutil.copytree(dinov2[0], tmp_path / "copy")
        (directory / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        for name in ("config.json", "preprocessor_config.json"):
            content = json.loads((directory / name).read_text())
            content |= {"trust_remote_code": True, "auto_map": {part: "own.Own"}}
            if part == "AutoConfig":
                content["model_type"] = "own"
            (directory / name).write_text(json.dumps(content))
        calls = [partial(load_backbone, f"hf:{directory}")]
        calls.append(partial(load_model, directory, {"dinov2": "Dinov2Model"}))
        for call in calls:
            with suppress(ValueError):  # what needs no code of its own may be read
                call()
        assert not (tmp_path / "ran").exists()

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
        if "old" in self.path:
            return self._refuse(404, "RevisionNotFound")
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
            about = {"id": "some/model", "sha": self.commit, "siblings": []}
            if "/tree/" in self.path:
                root = type(self).model
                paths = [str(p.relative_to(root)) for p in root.rglob("*.*")]
                about = [
                    {"type": "file", "path": p, "size": 1, "oid": p} for p in paths
                ]
            return self._send(json.dumps(about).encode(), body)
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

    def test_no_such_revision(self, hub):
        with pytest.raises(ValueError, match="but not this revision; check what foll"):
            load_backbone("hf:some/dino@old")

    def test_a_full_disk(self, monkeypatch):
        quiet_transformers()

        def full(*args, **kwargs):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("huggingface_hub.snapshot_download", full)
        with pytest.raises(ValueError, match=r"^a/b: .*No space left on device$"):
            load_backbone("hf:a/b")

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

    def test_what_is_downloaded(self, hub, dinov2, monkeypatch, tmp_path):
        """Older weights only where there are no others; nothing of other libraries."""
        model = shutil.copytree(dinov2[0], tmp_path / "copy")
        (model / "onnx").mkdir()
        for name in ("tf_model.h5", "pytorch_model.bin", "onnx/other.safetensors"):
            (model / name).write_bytes(b"large")
        monkeypatch.setattr(_Hub, "model", model)
        expected = load_backbone("hf:some/model")
        cached = {p.name for p in (tmp_path / "cache").rglob("snapshots/*/**/*.*")}
        assert cached == {
            *("config.json", "preprocessor_config.json", "model.safetensors")
        }
        (model / "model.safetensors").unlink()
        torch.save(dinov2[1].state_dict(), model / "pytorch_model.bin")
        monkeypatch.setattr(_Hub, "commit", _Hub.commit[::-1])
        older = load_backbone("hf:some/model")
        prepared = [older.prepare(p) for p in pictures()]
        assert torch.equal(older.embed(prepared), expected.embed(prepared))
