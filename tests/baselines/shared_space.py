"""Made-up spaces that texts and images share, and a CLIP small enough for tests."""

import string

import numpy as np
import pytest
import torch
from torch.nn import functional

WORDS = ("horizontal", "vertical", "checked")
IMAGE_SIZE = 32
WIDTH = 16


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def shared_space(seed=0, C=8, width=128, n=320, texts=6, off=1.0, within=2.0):
    """Text embeddings (C, texts, width), image features (n, width), labels.

    Texts and images of a class lie around one direction, moved apart by a gap between
    the two kinds; each class of texts is ``off`` its images.
    """
    random = np.random.default_rng(seed)
    classes = unit(random.normal(size=(C, width)))
    text_gap, image_gap = unit(random.normal(size=(2, width)))
    near = unit(random.normal(size=(C, texts, width)))
    T = unit(classes[:, None] + text_gap + 0.3 * near)
    labels = random.permutation(np.arange(n) % C)
    centres = classes + off * unit(random.normal(size=(C, width)))
    spread = within * unit(random.normal(size=(n, width)))
    X = 10 * unit(centres[labels] + image_gap + spread)
    return T.astype(np.float32), X.astype(np.float32), labels


def quiet_transformers():
    """The library, or a skipped test where the extra is not installed."""
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def letters():
    """A vocabulary of single letters."""
    characters = string.ascii_lowercase + string.digits + ".,-'()"
    ends = ["<|startoftext|>", "<|endoftext|>"]
    tokens = [*characters, *(f"{c}</w>" for c in characters), *ends]
    return {token: i for i, token in enumerate(tokens)}


def save_clip(directory, tokenizer=True):
    """A random CLIP of a few thousand weights, and its tokenizer; returns the model."""
    transformers = quiet_transformers()
    vocabulary = letters()
    end = vocabulary["<|endoftext|>"]
    small = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "projection_dim": 8,
    }
    text = {
        **small,
        "vocab_size": len(vocabulary),
        "bos_token_id": vocabulary["<|startoftext|>"],
        "eos_token_id": end,
        "pad_token_id": end,
    }
    vision = {**small, "image_size": 16, "patch_size": 8}
    config = transformers.CLIPConfig(
        text_config=text, vision_config=vision, projection_dim=8
    )
    model = seeded(lambda: transformers.CLIPModel(config)).eval()
    model.save_pretrained(directory)
    if tokenizer:
        made = transformers.CLIPTokenizer(vocab=vocabulary, merges=[])
        made.save_pretrained(directory)
    return model


def seeded(make, seed=0):
    """What ``make`` draws from the global generator, which is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def patterns(n, seed, contrast=1.0, noise=10.0, size=40):
    """Images of horizontal stripes, vertical stripes or checks, and which it is."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(n) % len(WORDS))
    images = []
    for label in labels:
        wave = (np.arange(size) + random.integers(8)) // 4 % 2
        rows, columns = np.broadcast_arrays(wave[:, None], wave[None, :])
        pattern = (rows, columns, rows ^ columns)[label][..., None]
        image = random.uniform(40, 80) + contrast * pattern * random.uniform(80, 150, 3)
        image = image + noise * random.normal(size=image.shape)
        images.append(np.clip(image, 0, 255).astype(np.uint8))
    return np.stack(images), labels


def plain_pixels(images):
    from sagl.baselines.lafter_images import as_tensor, plain_crop, read_image

    return as_tensor([plain_crop(read_image(i), IMAGE_SIZE) for i in images])


def save_pattern_clip(directory):
    """A vision transformer that knows the patterns, and their directions (3, WIDTH).

    It was trained on clear pictures only, with labels: what CLIP is to the world.
    """
    transformers = quiet_transformers()
    config = transformers.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_attention_heads=2,
        num_hidden_layers=2,
        image_size=IMAGE_SIZE,
        patch_size=8,
        projection_dim=WIDTH,
    )
    model = seeded(lambda: transformers.CLIPVisionModelWithProjection(config))
    draw = torch.Generator().manual_seed(0)
    T = torch.linalg.qr(torch.randn(WIDTH, len(WORDS), generator=draw))[0].T
    images, labels = patterns(300, seed=5)
    pixels, labels = plain_pixels(images), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(120):
        rows = torch.randint(len(pixels), (50,), generator=draw)
        features = functional.normalize(model(pixel_values=pixels[rows]).image_embeds)
        loss = functional.cross_entropy(10 * features @ T.T, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():  # CLIP's features have a length of about 10
        length = model(pixel_values=pixels[:50]).image_embeds.norm(dim=1).mean()
        model.visual_projection.weight.mul_(10 / length)
    model.save_pretrained(directory)
    return model, T.contiguous().numpy()
