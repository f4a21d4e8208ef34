"""Functions as backbones."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sagl.features.backbones import FunctionBackbone, load_backbone
from tests.features.models import pictures


def lengths(texts):
    return np.array([[len(t), t.count(" ")] for t in texts], dtype=np.float64)


def colours(images):
    return torch.stack(
        [torch.from_numpy(np.array(i).mean(axis=(0, 1))) for i in images]
    )


class Reader:
    """An object with all that a backbone needs."""

    name, kind, dim = "reader", "text", 1

    def prepare(self, sample):
        return len(sample)

    def embed(self, prepared):
        return torch.tensor([[float(p)] for p in prepared])

    def describe(self):
        return {"model": "reader"}


class Counter:
    """An object that can be called, and says what it embeds."""

    kind = "text"

    def __call__(self, texts):
        return lengths(texts)


HERE = __name__


class TestFunctionBackbone:
    def test_texts(self):
        backbone = FunctionBackbone(lengths, kind="text")
        assert (backbone.dim, backbone.name) == (2, f"{HERE}:lengths")
        features = backbone.embed([backbone.prepare(t) for t in ("a b", "abcd")])
        assert features.dtype == torch.float32
        assert features.tolist() == [[3, 1], [4, 0]]

    def test_pictures(self):
        backbone = FunctionBackbone(colours, kind="image")
        samples = pictures()
        features = backbone.embed(samples)
        assert features.shape == (3, 3)
        assert np.allclose(features[1], np.asarray(samples[1]).mean(axis=(0, 1)))

    @given(st.lists(st.text(), min_size=1, max_size=5))
    def test_every_row_is_its_own(self, texts):
        backbone = FunctionBackbone(lengths, "text", dim=2)
        together = backbone.embed(texts)
        for i, text in enumerate(texts):
            assert torch.equal(backbone.embed([text])[0], together[i])

    def test_with_a_width_it_is_not_asked(self):
        assert FunctionBackbone(pytest.fail, kind="text", dim=7).dim == 7

    def test_preparing_happens_in_workers(self):
        backbone = FunctionBackbone(
            lambda counts: [[c] for c in counts], "text", name="own", prepare=len
        )
        there = pickle.loads(pickle.dumps(backbone))  # a lambda cannot be sent
        assert there.prepare("abc") == 3
        assert backbone.embed([there.prepare("abc")]).tolist() == [[3]]
        with pytest.raises(RuntimeError, match="without the weights"):
            there.embed([3])

    def test_description(self):
        first = FunctionBackbone(lengths, "text").describe()
        assert first == FunctionBackbone(lengths, "text").describe()
        assert first == json.loads(json.dumps(first))
        assert first["model"] == f"{HERE}:lengths"
        assert len(first["revision"]) == 64
        assert FunctionBackbone(np.char.str_len, "text", 1).describe()["library"] == (
            f"numpy {np.__version__}"
        )

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda texts: np.ones((2, 3)), r"shape \(2, 3\) for 1 samples"),
            (lambda texts: np.ones(3), r"shape \(3,\) for 1"),
            (lambda texts: np.ones((1, 0)), r"shape \(1, 0\)"),
            (lambda texts: [["a"]], "expected real numbers"),
            (lambda texts: [[np.nan]], "infinite or not numbers"),
        ],
    )
    def test_says_what_is_wrong(self, function, message):
        with pytest.raises(ValueError, match=rf"^mine: .*{message}"):
            FunctionBackbone(function, kind="text", name="mine")

    def test_the_width_must_stay(self):
        backbone = FunctionBackbone(lambda t: np.ones((len(t), len(t))), "text")
        with pytest.raises(ValueError, match=r"expected \(2, 1\)"):
            backbone.embed(["a", "b"])

    def test_refuses_other_arguments(self):
        with pytest.raises(ValueError, match="must be a function; got 3"):
            FunctionBackbone(3, kind="text")
        with pytest.raises(ValueError, match="'image' or 'text'; got 'sound'"):
            FunctionBackbone(lengths, kind="sound")


class TestByName:
    def test_a_function_and_its_side(self):
        backbone = load_backbone(f"{HERE}:lengths#text")
        assert (backbone.kind, backbone.dim) == ("text", 2)
        assert backbone.name == f"{HERE}:lengths#text"
        assert backbone.describe()["model"] == f"{HERE}:lengths"

    @pytest.mark.parametrize("attribute", ["Counter", "Reader"])
    def test_a_class(self, attribute):
        backbone = load_backbone(f"{HERE}:{attribute}")
        assert backbone.kind == "text"
        features = backbone.embed([backbone.prepare("abc")])
        assert features[0, 0] == 3

    def test_objects(self):
        reader = Reader()
        assert load_backbone(reader) is reader
        assert load_backbone(Counter()).dim == 2
        with pytest.raises(ValueError, match="say whether it embeds images or texts"):
            load_backbone(lengths)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("nosuchmodule:function#text", "no module 'nosuchmodule'"),
            (f"{HERE}:nothing#text", "has no 'nothing'"),
            (f"{HERE}:HERE#text", "is no function"),
            (f"{HERE}:lengths", "say whether it embeds images or texts"),
            (f"{HERE}:Reader#image", "it embeds texts; leave out #image"),
        ],
    )
    def test_says_what_is_wrong(self, name, message):
        with pytest.raises(ValueError, match=message):
            load_backbone(name)

    def test_a_module_that_lacks_another(self, tmp_path, monkeypatch):
        (tmp_path / "needy_backbone.py").write_text("import a_missing_package\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=r"^needy_b.*named 'a_missing_package'$"):
            load_backbone("needy_backbone:function#text")

    def test_a_module_in_the_current_directory(self, tmp_path):
        """The command sagl, unlike python -m, does not look there by itself."""
        (tmp_path / "mine.py").write_text("def f(texts): return [[1.0]] * len(texts)\n")
        code = (
            "import sys; sys.path = [p for p in sys.path if p]\n"
            "from sagl.features.backbones import load_backbone\n"
            "print(load_backbone('mine:f#text').dim)\n"
        )
        script = tmp_path / "bin" / "script.py"
        script.parent.mkdir()
        script.write_text(code)
        process = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stdout == "1\n"
