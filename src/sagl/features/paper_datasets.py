"""The paper's eight data sets, from their standard downloads, in the paper's splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.images import find_images, printable, read_images
from sagl.features.samples import ListedSamples, file_error, reading
from sagl.features.tables import read_columns

__all__ = ["DATASETS", "PaperData", "open_dataset"]

_SPLITS = ("train", "test", "all")
_AGAIN = "download it again"
_SEED = 42  # of every split that was drawn at random
Rows = Iterator[tuple[str, str]]  # path below the base folder, and class


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper: where its download may be, how it is read, its sizes."""

    title: str
    n_train: int
    n_test: int
    n_classes: int
    folders: Sequence[str]  # below the one that the user names, where it may lie
    needed: Sequence[str] | Mapping[str, Sequence[str]]  # there, perhaps by split
    download: str  # what to get, and where
    # From this, the folder that has everything and the split to paths and classes.
    rows: Callable[[PaperData, Path, str], Rows]

    def find(self, root: Path, split: str) -> Path:
        """The folder below ``root`` that has everything."""
        needed = self.needed
        names = needed[split] if isinstance(needed, Mapping) else needed
        missing = {
            base: [name for name in names if not (base / name).exists()]
            for base in (root / folder for folder in ("", *self.folders))
        }
        # Name what is missing where something of it is there already.
        best = min(missing, key=lambda base: len(missing[base]))
        if missing[best]:
            raise self.error(best, f"there is no {' and no '.join(missing[best])}")
        return best

    def error(self, path: Path, what: str) -> ValueError:
        return file_error(path, f"{what}; {self.title} needs {self.download}")


def open_dataset(source: str, split: str | None = None) -> ListedSamples:
    """A part of ``NAME:FOLDER``, a data set of the paper: ``train``, ``test``, ``all``.

    Ids are paths below the folder that the download unpacks to, sorted.
    """
    name, _, folder = source.partition(":")
    if not folder:
        raise ValueError(f"{source}: say where it lies: {name}:FOLDER")
    data, root = DATASETS[name], Path(folder).expanduser()
    if not root.is_dir():
        raise file_error(root, f"there is no such folder to read {name} from")
    if split not in _SPLITS:
        raise file_error(root, f"choose a part of {name} (--split): train, test or all")
    base = data.find(root, split)
    rows = sorted(data.rows(data, base, split))
    if not rows:
        raise file_error(root, f"the {split} part of {name} is empty")
    paths, labels = [path for path, _ in rows], [label for _, label in rows]
    ids = list(map(printable, paths))
    return ListedSamples("image", ids, labels, read_images(base, paths))


def _by_lists(
    lists: Mapping[str, str], image: str, label: Callable[[str], str]
) -> Callable[[PaperData, Path, str], Rows]:
    """Official lists, one per split; each line begins with the name of an image."""

    def rows(data: PaperData, base: Path, split: str) -> Rows:
        for part in lists if split == "all" else (split,):
            for line in read_names(base / lists[part]):
                name = line.split()[0]
                yield image.format(name), label(name)

    return rows


def _at_random(
    n_train: int, n_test: int | None = None
) -> Callable[[PaperData, Path, str], Rows]:
    """So many images of each class folder at random, and so many or all others."""

    def rows(data: PaperData, base: Path, split: str) -> Rows:
        classes: dict[str, list[str]] = {}
        for path in find_images(base)[0]:
            folder, slash, _ = path.partition("/")
            if slash:
                classes.setdefault(folder, []).append(path)
        n, expected, least = len(classes), data.n_classes, n_train + (n_test or 1)
        if n != expected:
            raise data.error(base, f"has {n} folders of images, expected {expected}")
        for name, images in classes.items():
            if (n := len(images)) < least:
                raise data.error(base / name, f"has {n} images, expected {least:,}")
            order = shuffled(n)
            end = None if n_test is None else n_train + n_test
            chosen = {"train": order[:n_train], "test": order[n_train:end]}
            for row in chosen.get(split, order):
                yield images[row], name

    return rows


def _flowers(data: PaperData, base: Path, split: str) -> Rows:
    """The official lists; a class is a number from 1 to 102."""
    # The official training part is small; the paper adds the validation part to it.
    keys = {"train": ["trnid", "valid"], "test": ["tstid"]}
    species = np.atleast_1d(read_matlab(base / "imagelabels.mat", "labels"))
    lists = base / "setid.mat"
    for key in keys.get(split, ["trnid", "valid", "tstid"]):
        with reading(lists, _AGAIN):
            for number in np.atleast_1d(read_matlab(lists, key)).tolist():
                yield f"jpg/image_{number:05d}.jpg", str(species[number - 1])


def _sun397(data: PaperData, base: Path, split: str) -> Rows:
    """The first of the ten official partitions, or every image there is.

    A class is a folder without its initial: ``a/apse/indoor`` is ``apse/indoor``.
    """
    if split == "all":
        # Depth tells images from strays: letter/class[/place]/image.
        paths = [path for path in find_images(base)[0] if path.count("/") >= 2]
    else:
        name = {"train": "Training_01.txt", "test": "Testing_01.txt"}[split]
        file = _nearby(base, name, f"Partitions/{name}", f"SUN397/{name}")
        if file is None:
            raise data.error(base, f"there is no {name}")
        paths = [line.lstrip("/") for line in read_names(file)]
    for path in paths:
        yield path, "/".join(path.split("/")[1:-1])


def _kitti(data: PaperData, base: Path, split: str) -> Rows:
    """How far away is the nearest vehicle? 80 % of the images, or the other 20 %.

    The classes are those of the Visual Task Adaptation Benchmark: no car, van or truck
    at all, or the nearest one up to 8 m, up to 20 m or farther along the camera's axis.
    The official test set has no annotations, so the annotated images are divided.
    """
    names = find_images(base / "training/image_2")[0]
    order = shuffled(len(names))
    cut = round(0.8 * len(names))
    for row in {"train": order[:cut], "test": order[cut:]}.get(split, order):
        path = base / "training/label_2" / f"{Path(names[row]).stem}.txt"
        objects = [line.split() for line in read_names(path)]
        vehicles = [o for o in objects if o[0] in ("Car", "Van", "Truck")]
        label = "no vehicle"
        if vehicles:
            try:
                nearest = min(float(vehicle[13]) for vehicle in vehicles)
            except (IndexError, ValueError):
                raise file_error(path, f"lacks a distance; {_AGAIN}") from None
            far = "up to 20 m" if nearest <= 20 else "farther"
            label = "up to 8 m" if nearest <= 8 else far
        yield f"training/image_2/{names[row]}", label


_ANSWERS = "ILSVRC2012_validation_ground_truth.txt"
_KAGGLE_ANSWERS = "LOC_val_solution.csv"


def _imagenet(data: PaperData, base: Path, split: str) -> Rows:
    """A class is a synset such as n01440764.

    The official test set has no labels: val is the test.
    """
    for part in {"train": ["train"], "test": ["val"]}.get(split, ["train", "val"]):
        names = find_images(base / part)[0]
        folders = [name.rpartition("/")[0].partition("/")[0] for name in names]
        if part == "val" and names and not any(folders):
            folders = _imagenet_answers(data, base, names)
        if not all(folders) or not names:
            raise data.error(
                base / part, "there are no images, or none in class folders"
            )
        yield from ((f"{part}/{n}", y) for n, y in zip(names, folders, strict=True))


def _imagenet_answers(data: PaperData, base: Path, names: list[str]) -> list[str]:
    """Classes of validation images that lie side by side."""
    kits = ("ILSVRC2012_devkit_t12/data", "devkit/data", "data")
    path = _nearby(base, *(f"{kit}/{_ANSWERS}" for kit in kits), _KAGGLE_ANSWERS)
    if path is None:
        raise data.error(
            base,
            f"the images in val lie side by side, and there is neither {kits[0]}/"
            f"{_ANSWERS} nor {_KAGGLE_ANSWERS} to tell their classes",
        )
    with reading(path, _AGAIN):
        if path.name == _KAGGLE_ANSWERS:
            # Rows of an image and its boxes, each of which begins with the synset.
            images, boxes = read_columns(path, [None]).values()
            classes = [(box or "").partition(" ")[0] for box in boxes]
        else:
            # Line i holds the number of the class of validation image i.
            synsets = np.atleast_1d(read_matlab(path.with_name("meta.mat"), "synsets"))
            synset = {int(s["ILSVRC2012_ID"]): str(s["WNID"]) for s in synsets}
            classes = [synset[int(line)] for line in read_names(path)]
            images = [f"ILSVRC2012_val_{i:08d}" for i in range(1, len(classes) + 1)]
        answers = dict(zip(images, classes, strict=True))
        return [answers[Path(name).stem] for name in names]


def _nearby(base: Path, *files: str) -> Path | None:
    """The first of some files that lies in a folder, or in one not far above."""
    places = (above / file for above in (base, *base.parents[:3]) for file in files)
    return next((place for place in places if place.is_file()), None)


def read_names(path: Path) -> list[str]:
    """Lines of a list that are neither blank nor comments."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(path, f"cannot be read ({error}); {_AGAIN}") from None
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def read_matlab(path: Path, key: str) -> Any:
    from scipy.io import loadmat

    with reading(path, _AGAIN):
        return loadmat(path, squeeze_me=True, variable_names=[key])[key]


def shuffled(count: int) -> NDArray[np.int64]:
    """The numbers below ``count``, in the order of the fixed seed.

    The generator is NumPy's frozen one: its stream is the same in every version.
    """
    return np.random.RandomState(_SEED).permutation(count)


DATASETS = {
    "pets": PaperData(
        *("Oxford-IIIT Pets", 3_680, 3_669, 37),
        ["oxford-iiit-pet", "pets"],
        ["images", "annotations/trainval.txt", "annotations/test.txt"],
        "images.tar.gz and annotations.tar.gz from "
        "https://www.robots.ox.ac.uk/~vgg/data/pets, unpacked side by side",
        _by_lists(
            {"train": "annotations/trainval.txt", "test": "annotations/test.txt"},
            "images/{}.jpg",
            lambda name: name.rpartition("_")[0],  # Abyssinian_1
        ),
    ),
    "kitti": PaperData(
        *("KITTI", 5_985, 1_496, 4),
        ["Kitti", "Kitti/raw", "kitti", "raw"],
        ["training/image_2", "training/label_2"],
        "data_object_image_2.zip and data_object_label_2.zip from "
        "https://www.cvlibs.net/datasets/kitti/eval_object.php, unpacked side by side",
        _kitti,
    ),
    "flowers": PaperData(
        *("Oxford Flowers 102", 2_040, 6_149, 102),
        ["flowers-102", "flowers"],
        ["jpg", "imagelabels.mat", "setid.mat"],
        "102flowers.tgz, imagelabels.mat and setid.mat from "
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102, side by side",
        _flowers,
    ),
    "caltech101": PaperData(
        *("Caltech 101", 3_060, 6_084, 102),  # the background counts as a class
        [
            "101_ObjectCategories",
            "caltech-101/101_ObjectCategories",
            "caltech101/101_ObjectCategories",
            "caltech-101",
        ],
        ["BACKGROUND_Google", "accordion"],
        "caltech-101.zip from https://data.caltech.edu/records/mzrjq-6wc02, with "
        "101_ObjectCategories.tar.gz inside of it unpacked",
        _at_random(30),
    ),
    "eurosat": PaperData(
        *("EuroSAT", 10_000, 5_000, 10),
        ["2750", "EuroSAT_RGB", "EuroSAT", "EuroSAT/2750", "eurosat", "eurosat/2750"],
        [
            *("AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial"),
            *("Pasture", "PermanentCrop", "Residential", "River", "SeaLake"),
        ],
        "the RGB images, EuroSAT_RGB.zip from https://zenodo.org/records/7711810",
        _at_random(1_000, 500),
    ),
    "sun397": PaperData(
        *("SUN397", 19_850, 19_850, 397),
        ["SUN397", "sun397"],
        ["a/abbey"],
        "SUN397.tar.gz and Partitions.zip from "
        "https://vision.princeton.edu/projects/2010/SUN, the lists beside or in SUN397",
        _sun397,
    ),
    "food101": PaperData(
        *("Food-101", 75_750, 25_250, 101),
        ["food-101", "food101"],
        ["images", "meta/train.txt", "meta/test.txt"],
        "food-101.tar.gz from "
        "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101",
        _by_lists(
            {"train": "meta/train.txt", "test": "meta/test.txt"},
            "images/{}.jpg",
            lambda name: name.partition("/")[0],
        ),
    ),
    "imagenet": PaperData(
        *("ImageNet-1K", 1_281_167, 50_000, 1_000),
        ["imagenet", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"],
        {"train": ["train"], "test": ["val"], "all": ["train", "val"]},
        "ILSVRC2012_img_train.tar, unpacked to train/n01440764/*.JPEG and so on, "
        "ILSVRC2012_img_val.tar, unpacked to val, and ILSVRC2012_devkit_t12.tar.gz, "
        "from https://www.image-net.org",
        _imagenet,
    ),
}
