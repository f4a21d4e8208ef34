"""The paper's data sets: small copies of the standard layouts, and the split rules."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from sagl.features.paper_datasets import shuffled
from sagl.features.readers import DATASETS, open_samples
from sagl.features.samples import Unreadable
from tests.features.image_files import GREEN, RED, colour_of, save_picture
from tests.features.small_files import write


def lines(path: Path, *content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, "\n".join(content) + "\n")


def touch(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def refused(source: str, split: str | None = "train") -> str:
    with pytest.raises(ValueError, match=": ") as caught:
        open_samples(source, split=split)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def make_pets(root: Path) -> None:
    save_picture(root / "images/Abyssinian_1.jpg", RED)
    save_picture(root / "images/english_setter_12.jpg", GREEN)
    touch(root / "images", "Abyssinian_2.jpg", "Abyssinian_100.mat", "pug_9.jpg")
    lines(
        root / "annotations/trainval.txt",
        "english_setter_12 14 2 4",
        "Abyssinian_1 1 1 1",
    )
    lines(root / "annotations/test.txt", "Abyssinian_2 1 1 1")


def test_pets(tmp_path):
    make_pets(tmp_path)
    train = open_samples(f"pets:{tmp_path}", split="train")
    assert train.kind == "image"
    assert train.ids == ["images/Abyssinian_1.jpg", "images/english_setter_12.jpg"]
    assert train.labels == ["Abyssinian", "english_setter"]
    assert [colour_of(train[row]) for row in range(2)] == [RED, GREEN]
    test = open_samples(f"pets:{tmp_path}", split="test")
    assert test.ids == ["images/Abyssinian_2.jpg"]
    assert len(open_samples(f"pets:{tmp_path}", split="all").ids) == 3


def test_ids_do_not_depend_on_which_folder_is_named(tmp_path):
    make_pets(tmp_path / "oxford-iiit-pet")
    outer = open_samples(f"pets:{tmp_path}", split="train")
    inner = open_samples(f"pets:{tmp_path / 'oxford-iiit-pet'}", split="train")
    assert outer.ids == inner.ids
    assert colour_of(pickle.loads(pickle.dumps(outer))[0]) == RED


def test_an_image_that_is_missing_is_recorded(tmp_path):
    make_pets(tmp_path)
    (tmp_path / "images/Abyssinian_1.jpg").unlink()
    samples = open_samples(f"pets:{tmp_path}", split="train")
    with pytest.raises(Unreadable, match="no such file"):
        samples[0]


def test_incomplete_pets(tmp_path):
    make_pets(tmp_path)
    (tmp_path / "annotations/test.txt").unlink()
    message = refused(f"pets:{tmp_path}")
    assert message.startswith(f"{tmp_path}: there is no annotations/test.txt; Oxford")
    assert "annotations.tar.gz from https://www.robots.ox.ac.uk" in message


OBJECT = (
    "{} 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 {} -1.59"
)


def make_kitti(root: Path) -> None:
    scenes = {
        "000000": ["Pedestrian 3.0", "DontCare -1000"],
        "000001": ["Car 8.0", "Car 30"],
        "000002": ["Van 8.01"],
        "000003": ["Truck 20", "Pedestrian 1"],
        "000004": ["Car 20.01"],
        "000005": ["Car -2.5", "Car 50"],  # cut off by the edge, beside the camera
        "000006": ["Tram 4", "Misc 5", "Cyclist 6"],
    }
    for name, objects in scenes.items():
        touch(root / "training/image_2", f"{name}.png")
        rows = [OBJECT.format(*row.split()) for row in objects]
        lines(root / "training/label_2" / f"{name}.txt", *rows)


def test_kitti_classes(tmp_path):
    make_kitti(tmp_path)
    samples = open_samples(f"kitti:{tmp_path}", split="all")
    assert samples.ids[0] == "training/image_2/000000.png"
    assert samples.labels == [
        "no vehicle",
        "up to 8 m",
        "up to 20 m",
        "up to 20 m",
        "farther",
        "up to 8 m",
        "no vehicle",
    ]


def test_kitti_split(tmp_path):
    make_kitti(tmp_path / "Kitti/raw")
    train = open_samples(f"kitti:{tmp_path}", split="train")
    test = open_samples(f"kitti:{tmp_path}", split="test")
    order = np.random.RandomState(42).permutation(7)
    assert train.ids == sorted(f"training/image_2/{i:06d}.png" for i in order[:6])
    assert test.ids == [f"training/image_2/{order[6]:06d}.png"]
    # As many as in the paper, of the 7,481 annotated images.
    assert round(0.8 * 7_481) == DATASETS["kitti"].n_train
    assert 7_481 - round(0.8 * 7_481) == DATASETS["kitti"].n_test


def test_broken_kitti(tmp_path):
    make_kitti(tmp_path)
    path = tmp_path / "training/label_2/000003.txt"
    lines(path, "Car 0.0 0")
    assert refused(f"kitti:{tmp_path}", "all").startswith(
        f"{path}: lacks a distance; download it again"
    )
    path.write_text("")
    every = open_samples(f"kitti:{tmp_path}", split="all")
    labels = dict(zip(every.ids, every.labels, strict=True))
    assert labels["training/image_2/000003.png"] == "no vehicle"
    path.unlink()
    assert refused(f"kitti:{tmp_path}", "all").startswith(f"{path}: cannot be read")


def make_flowers(root: Path) -> None:
    touch(root / "jpg", *[f"image_{i:05d}.jpg" for i in range(1, 7)])
    savemat(root / "imagelabels.mat", {"labels": np.array([[77, 77, 1, 2, 1, 102]])})
    parts = {"trnid": [[6, 1]], "valid": [[3]], "tstid": [[2, 4, 5]]}
    savemat(root / "setid.mat", {k: np.array(v, "u2") for k, v in parts.items()})


def test_flowers(tmp_path):
    make_flowers(tmp_path)
    train = open_samples(f"flowers:{tmp_path}", split="train")
    names = [Path(name).stem for name in train.ids]
    assert names == ["image_00001", "image_00003", "image_00006"]
    assert train.labels == ["77", "1", "102"]
    test = open_samples(f"flowers:{tmp_path}", split="test")
    assert test.labels == ["77", "2", "1"]
    assert len(open_samples(f"flowers:{tmp_path}", split="all").ids) == 6


def test_broken_flowers(tmp_path):
    make_flowers(tmp_path)
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([[1, 2]])})
    assert (
        "setid.mat: is cut short, damaged or not a .mat file (index 5 is out"
        in refused(f"flowers:{tmp_path}")
    )
    write(tmp_path / "setid.mat", b"MATLAB?")
    assert "setid.mat: is cut short, damaged or not a .mat file" in refused(
        f"flowers:{tmp_path}"
    )


def make_caltech(root: Path) -> None:
    """A hundred and two folders, most of them links to one of 31 images."""
    base = root / "101_ObjectCategories"
    touch(base / "Faces", *[f"image_{i:04d}.jpg" for i in range(1, 33)])
    for name in ("BACKGROUND_Google", "class_06"):
        touch(base / name, *[f"image_{i:04d}.jpg" for i in range(1, 32)])
    touch(base / "BACKGROUND_Google", "tmp")  # as in the archive
    for name in ("accordion", *[f"class_{i:02d}" for i in range(99)]):
        if name != "class_06":
            (base / name).symlink_to(base / "class_06")


def test_caltech101(tmp_path):
    make_caltech(tmp_path)
    train = open_samples(f"caltech101:{tmp_path}", split="train")
    test = open_samples(f"caltech101:{tmp_path}", split="test")
    both = open_samples(f"caltech101:{tmp_path}", split="all")
    assert len(train.ids) == DATASETS["caltech101"].n_train == 102 * 30
    assert len(test.ids) == 102 + 1  # two of Faces, one of each other folder
    assert sorted([*train.ids, *test.ids]) == list(both.ids)
    assert len(set(train.labels)) == len(set(test.labels)) == 102
    assert "BACKGROUND_Google/tmp" not in both.ids
    # The released rule: seeded anew for each class, chosen without replacement.
    rows = np.random.RandomState(42).choice(32, size=30, replace=False)
    expected = sorted(f"Faces/image_{row + 1:04d}.jpg" for row in rows)
    assert [name for name in train.ids if name.startswith("Faces/")] == expected


def test_incomplete_caltech101(tmp_path):
    make_caltech(tmp_path)
    base = tmp_path / "101_ObjectCategories"
    (base / "class_98").rename(tmp_path / "elsewhere")
    message = refused(f"caltech101:{tmp_path}")
    assert message.startswith(f"{base}: has 101 folders of images, expected 102")
    (tmp_path / "elsewhere").rename(base / "class_98")
    (base / "Faces/image_0001.jpg").unlink()
    (base / "Faces/image_0002.jpg").unlink()
    message = refused(f"caltech101:{tmp_path}")
    assert message.startswith(f"{base / 'Faces'}: has 30 images, expected 31")
    (base / "BACKGROUND_Google").rename(tmp_path / "background")
    message = refused(f"caltech101:{tmp_path}")
    assert message.startswith(
        f"{base}: there is no BACKGROUND_Google; Caltech 101 needs"
    )


def test_eurosat(tmp_path):
    names = ["AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial"]
    names += ["Pasture", "PermanentCrop", "Residential", "River", "SeaLake"]
    base = tmp_path / "2750"
    touch(base / "River", *[f"River_{i}.jpg" for i in range(1, 1_502)])
    for name in names:
        if name != "River":  # the same 1,501 images, to spare the disk
            (base / name).symlink_to(base / "River")
    train = open_samples(f"eurosat:{tmp_path}", split="train")
    test = open_samples(f"eurosat:{tmp_path}", split="test")
    assert len(train.ids) == DATASETS["eurosat"].n_train
    assert len(test.ids) == DATASETS["eurosat"].n_test
    assert not set(train.ids) & set(test.ids)
    assert len(open_samples(f"eurosat:{tmp_path}", split="all").ids) == 15_010
    labels, counts = np.unique(list(train.labels), return_counts=True)
    assert labels.tolist() == names
    assert set(counts.tolist()) == {1_000}
    # The released rule, over names in the order of their letters: 1, 10, 100, ...
    river = sorted(f"River/River_{i}.jpg" for i in range(1, 1_502))
    rows = np.random.RandomState(42).choice(1_501, size=1_500, replace=False)
    chosen = {river[row] for row in rows[:1_000]}
    assert {name for name in train.ids if name.startswith("River/")} == chosen
    (base / "River/River_1.jpg").unlink()
    (base / "River/River_2.jpg").unlink()
    message = refused(f"eurosat:{tmp_path}")
    assert "AnnualCrop: has 1499 images, expected 1,500" in message
    (base / "Forest").rename(tmp_path / "wood")
    assert "there is no Forest; EuroSAT needs" in refused(f"eurosat:{tmp_path}")


def make_sun397(root: Path) -> None:
    touch(root / "SUN397/a/abbey", "sun_a.jpg", "sun_b.jpg")
    touch(root / "SUN397/a/apse/indoor", "sun_c.jpg")
    touch(root / "SUN397", "README.txt", "logo.jpg")


@pytest.mark.parametrize("folder", ["", "Partitions", "SUN397", "SUN397/Partitions"])
def test_sun397(tmp_path, folder):
    make_sun397(tmp_path)
    lines(
        tmp_path / folder / "Training_01.txt",
        "/a/apse/indoor/sun_c.jpg",
        "/a/abbey/sun_b.jpg",
    )
    lines(tmp_path / folder / "Testing_01.txt", "/a/abbey/sun_a.jpg")
    train = open_samples(f"sun397:{tmp_path}", split="train")
    assert train.ids == ["a/abbey/sun_b.jpg", "a/apse/indoor/sun_c.jpg"]
    assert train.labels == ["abbey", "apse/indoor"]
    assert open_samples(f"sun397:{tmp_path}", split="test").labels == ["abbey"]


def test_sun397_without_partitions(tmp_path):
    make_sun397(tmp_path)
    every = open_samples(f"sun397:{tmp_path}", split="all")
    assert every.labels == ["abbey", "abbey", "apse/indoor"]
    message = refused(f"sun397:{tmp_path}")
    assert "there is no Training_01.txt; SUN397 needs" in message
    assert "Partitions.zip" in message


def test_food101(tmp_path):
    base = tmp_path / "food-101"
    save_picture(base / "images/apple_pie/1005649.jpg", GREEN)
    touch(base / "images/baby_back_ribs", "1.jpg", "2.jpg")
    lines(base / "meta/train.txt", "baby_back_ribs/2", "apple_pie/1005649")
    lines(base / "meta/test.txt", "baby_back_ribs/1")
    train = open_samples(f"food101:{tmp_path}", split="train")
    assert train.ids == ["images/apple_pie/1005649.jpg", "images/baby_back_ribs/2.jpg"]
    assert train.labels == ["apple_pie", "baby_back_ribs"]
    assert colour_of(train[0]) == GREEN
    assert open_samples(f"food101:{tmp_path}", split="test").labels == [
        "baby_back_ribs"
    ]
    (base / "meta/train.txt").write_text("\n")
    assert "the train part of food101 is empty" in refused(f"food101:{tmp_path}")


def make_imagenet(root: Path, *, flat: bool) -> None:
    for synset in ("n01440764", "n01443537"):
        touch(root / "train" / synset, f"{synset}_1.JPEG", f"{synset}_2.JPEG")
    val = root / "val"
    if flat:
        touch(val, *[f"ILSVRC2012_val_{i:08d}.JPEG" for i in (1, 2, 3)])
    else:
        touch(val / "n01443537", "ILSVRC2012_val_00000001.JPEG")
        touch(val / "n01440764", "ILSVRC2012_val_00000002.JPEG")


def make_devkit(folder: Path) -> None:
    """As in the devkit: classes first, then the nodes above them."""
    folder.mkdir(parents=True)
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("num_children", "O")]
    rows = [(1, "n01443537", 0), (2, "n01440764", 0), (3, "n00001740", 2)]
    savemat(folder / "meta.mat", {"synsets": np.array(rows, dtype=fields)})
    lines(folder / "ILSVRC2012_validation_ground_truth.txt", "2", "1", "2")


def test_imagenet_with_folders_of_classes(tmp_path):
    make_imagenet(tmp_path, flat=False)
    train = open_samples(f"imagenet:{tmp_path}", split="train")
    assert train.ids[0] == "train/n01440764/n01440764_1.JPEG"
    assert train.labels == ["n01440764"] * 2 + ["n01443537"] * 2
    test = open_samples(f"imagenet:{tmp_path}", split="test")
    assert test.labels == ["n01440764", "n01443537"]
    assert len(open_samples(f"imagenet:{tmp_path}", split="all").ids) == 6


@pytest.mark.parametrize("devkit", ["ILSVRC2012_devkit_t12/data", "devkit/data"])
def test_imagenet_with_a_flat_val(tmp_path, devkit):
    make_imagenet(tmp_path, flat=True)
    make_devkit(tmp_path / devkit)
    test = open_samples(f"imagenet:{tmp_path}", split="test")
    assert test.ids[1] == "val/ILSVRC2012_val_00000002.JPEG"
    assert test.labels == ["n01440764", "n01443537", "n01440764"]


def test_imagenet_from_kaggle(tmp_path):
    make_imagenet(tmp_path / "ILSVRC/Data/CLS-LOC", flat=True)
    rows = [
        f"ILSVRC2012_val_{i:08d},n0144353{i} 1 2 3 4 n0144353{i} 5 6 7 8"
        for i in (3, 1, 2)
    ]
    lines(tmp_path / "LOC_val_solution.csv", "ImageId,PredictionString", *rows)
    test = open_samples(f"imagenet:{tmp_path}", split="test")
    assert test.labels == ["n01443531", "n01443532", "n01443533"]


def test_incomplete_imagenet(tmp_path):
    make_imagenet(tmp_path, flat=True)
    message = refused(f"imagenet:{tmp_path}", "test")
    assert "neither ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground" in message
    make_devkit(tmp_path / "devkit/data")
    touch(tmp_path / "val", "ILSVRC2012_val_00000009.JPEG")
    message = refused(f"imagenet:{tmp_path}", "test")
    assert "not a .txt file ('ILSVRC2012_val_00000009'); download it" in message
    touch(tmp_path / "train", "stray.JPEG")
    assert "there are no images, or none in class folders" in refused(
        f"imagenet:{tmp_path}", "train"
    )
    (tmp_path / "train").rename(tmp_path / "training")
    message = refused(f"imagenet:{tmp_path}", "train")
    assert message.startswith(f"{tmp_path}: there is no train; ImageNet-1K needs")


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_refuses_an_empty_folder_and_a_missing_one(tmp_path, name):
    for split in ("train", "test"):
        message = refused(f"{name}:{tmp_path}", split)
        assert message.startswith(f"{tmp_path}: there is no ")
        assert "https://" in message
    assert "there is no such folder" in refused(f"{name}:{tmp_path / 'nix'}")
    assert "choose a part of" in refused(f"{name}:{tmp_path}", None)
    assert "choose a part of" in refused(f"{name}:{tmp_path}", "validation")
    assert f"say where it lies: {name}:FOLDER" in refused(name)


def test_data_sets_take_no_columns(tmp_path):
    with pytest.raises(ValueError, match="a data set of the paper takes no --column"):
        open_samples(f"pets:{tmp_path}", column="x", split="train")


def test_the_random_order_is_frozen():
    assert shuffled(10).tolist() == [8, 1, 5, 0, 7, 2, 9, 4, 3, 6]


def test_sizes_are_the_papers():
    sizes = {name: (d.n_train, d.n_test, d.n_classes) for name, d in DATASETS.items()}
    assert sizes["pets"] == (3_680, 3_669, 37)
    assert sizes["imagenet"] == (1_281_167, 50_000, 1_000)
    assert sizes["eurosat"] == (10_000, 5_000, 10)
