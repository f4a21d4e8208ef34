"""Models of the real kinds, a few thousand random weights each, in the real format."""

import json

import numpy as np
import pytest

from tests.baselines.shared_space import quiet_transformers, save_clip, seeded

SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
}
SENTENCE = "a the cat dog sat on under red blue mat tree and ran far away from"
WORDS = SENTENCE.split()
LONG = " ".join(WORDS * 20)
TEXTS = ["the cat sat on the mat", "a dog", "red tree and blue tree", LONG]
# As facebook/dinov3-vitl16-pretrain-lvd1689m has it, but smaller.
DINOV3_PICTURES = {
    "crop_size": None,
    "do_center_crop": None,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_processor_type": "DINOv3ViTImageProcessorFast",
    "image_std": [0.229, 0.224, 0.225],
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"height": 32, "width": 32},
}


def pictures(n=3, seed=0, size=(40, 52)):
    """Pictures of noise over a slope, of different sizes."""
    Image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(seed)
    made = []
    for i in range(n):
        height, width = size[0] + 3 * i, size[1] - 2 * i
        slope = np.linspace(0, 200, width)[None, :, None] * random.uniform(0, 1, 3)
        noise = random.uniform(0, 55, (height, width, 3))
        made.append(Image.fromarray((slope + noise).astype(np.uint8)))
    return made


def save_dinov3(directory):
    transformers = quiet_transformers()
    config = transformers.DINOv3ViTConfig(
        **SMALL, image_size=32, patch_size=8, num_register_tokens=2
    )
    model = seeded(lambda: transformers.DINOv3ViTModel(config)).eval()
    model.save_pretrained(directory)
    (directory / "preprocessor_config.json").write_text(json.dumps(DINOV3_PICTURES))
    return model


def save_dinov2(directory):
    transformers = quiet_transformers()
    config = transformers.Dinov2Config(**SMALL, image_size=28, patch_size=14)
    model = seeded(lambda: transformers.Dinov2Model(config)).eval()
    model.save_pretrained(directory)
    processor("Bit", size={"shortest_edge": 32}, crop_size=28, do_center_crop=True)(
        directory
    )
    return model


def save_siglip(directory):
    """What google/siglip2-large-patch16-384 is: SigLIP 2 at one resolution."""
    transformers = quiet_transformers()
    config = transformers.SiglipConfig(
        text_config={**SMALL, "vocab_size": 64, "max_position_embeddings": 12},
        vision_config={**SMALL, "image_size": 32, "patch_size": 8},
    )
    model = seeded(lambda: transformers.SiglipModel(config)).eval()
    model.save_pretrained(directory)
    processor("Siglip", size={"height": 32, "width": 32})(directory)
    tokenizer(directory)
    return model


def save_siglip2(directory):
    """SigLIP 2 for pictures of any shape (NaFlex)."""
    transformers = quiet_transformers()
    config = transformers.Siglip2Config(
        text_config={**SMALL, "vocab_size": 64, "max_position_embeddings": 12},
        vision_config={**SMALL, "num_patches": 16, "patch_size": 8},
    )
    model = seeded(lambda: transformers.Siglip2Model(config)).eval()
    model.save_pretrained(directory)
    processor("Siglip2", patch_size=8, max_num_patches=16)(directory)
    tokenizer(directory)
    return model


def save_whole_clip(directory):
    model = save_clip(directory)
    sizes = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    processor("CLIP", **sizes)(directory)
    return model


def save_convnextv2(directory):
    """With its classifier, as facebook/convnextv2-large-22k-224 is saved."""
    transformers = quiet_transformers()
    config = transformers.ConvNextV2Config(
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        image_size=32,
        num_labels=3,
        id2label={0: "tench", 1: "goldfish", 2: "great white shark"},
    )
    model = seeded(lambda: transformers.ConvNextV2ForImageClassification(config)).eval()
    model.save_pretrained(directory)
    processor("ConvNext", size={"shortest_edge": 32}, crop_pct=1.0)(directory)
    return model


def save_bert(directory, **more):
    transformers = quiet_transformers()
    config = transformers.BertConfig(
        **SMALL, vocab_size=64, max_position_embeddings=32, **more
    )
    model = seeded(lambda: transformers.BertModel(config)).eval()
    model.save_pretrained(directory)
    tokenizer(directory)
    return model


def processor(kind, **settings):
    """Saves the processor of a kind of model without torchvision."""

    def save(directory):
        transformers = quiet_transformers()
        getattr(transformers, f"{kind}ImageProcessorPil")(**settings).save_pretrained(
            directory
        )

    return save


def tokenizer(directory):
    """A real WordPiece tokenizer of a few words."""
    transformers = quiet_transformers()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    made = transformers.BertTokenizer(vocab=vocabulary)
    made.save_pretrained(directory)
    return made


def sentence_files(directory, pooling="mean_tokens", modules=(), longest=None, **more):
    """What sentence-transformers saves beside a transformer."""
    base = "sentence_transformers.models"
    listed = [("", "Transformer"), ("1_Pooling", "Pooling"), *modules]
    entries = [{"path": p, "type": f"{base}.{t}"} for p, t in listed]
    (directory / "modules.json").write_text(json.dumps(entries))
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    settings = {f"pooling_mode_{mode}": mode == pooling for mode in modes}
    settings[f"pooling_mode_{pooling}"] = True
    (directory / "1_Pooling").mkdir(exist_ok=True)
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    if longest is not None:
        (directory / "sentence_bert_config.json").write_text(
            json.dumps({"max_seq_length": longest, "do_lower_case": False})
        )
    if more:
        (directory / "config_sentence_transformers.json").write_text(json.dumps(more))


SAVE = {
    "dinov3": save_dinov3,
    "dinov2": save_dinov2,
    "siglip": save_siglip,
    "siglip2": save_siglip2,
    "clip": save_whole_clip,
    "convnextv2": save_convnextv2,
    "bert": save_bert,
}
