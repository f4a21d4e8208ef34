"""Features that other tools saved."""

import json

import numpy as np
import pytest

from sagl.features.backbones import load_backbone, read_saved


@pytest.fixture
def array():
    return np.random.default_rng(0).normal(size=(5, 3)).astype(np.float16)


class TestPlainFiles:
    def test_a_memory_map_without_ids(self, tmp_path, array):
        np.save(tmp_path / "dino.npy", array)
        saved = read_saved(f"npy:{tmp_path}/dino.npy")
        assert isinstance(saved.array, np.memmap)
        assert np.array_equal(saved.array, array)
        assert saved.ids is None

    def test_one_array_of_several(self, tmp_path, array):
        np.savez(tmp_path / "all.npz", a=array, b=array[:2])
        saved = read_saved(f"npy:{tmp_path}/all.npz::b")
        assert len(saved.array) == 2
        assert saved.describe()["model"].endswith("all.npz::b")

    @pytest.mark.parametrize(
        "file",
        [
            "dino.ids.txt",
            "dino_ids.txt",
            "dino.ids.npy",
            "ids.npy",
            "ids.txt",
            "ids.csv",
        ],
    )
    def test_ids_beside_it(self, tmp_path, array, file):
        np.save(tmp_path / "dino.npy", array)
        ids = [f"{i}.jpg" for i in range(5)]
        if file.endswith(".npy"):
            np.save(tmp_path / file, np.array(ids))
        else:
            (tmp_path / file).write_text("\n".join(ids) + "\n")
        assert read_saved(f"npy:{tmp_path}/dino.npy").ids == ids

    def test_whole_numbers_as_ids(self, tmp_path, array):
        np.save(tmp_path / "dino.npy", array)
        np.save(tmp_path / "dino_ids.npy", np.arange(5) * 10)
        assert read_saved(f"npy:{tmp_path}/dino.npy").ids == [
            "0",
            "10",
            "20",
            "30",
            "40",
        ]

    def test_description(self, tmp_path, array):
        np.save(tmp_path / "dino.npy", array)
        first = read_saved(f"npy:{tmp_path}/dino.npy").describe()
        assert first == json.loads(json.dumps(first))
        assert first["dim"] == 3
        assert str(tmp_path.parent) not in json.dumps(first)
        np.save(tmp_path / "dino.npy", array + 1)
        second = read_saved(f"npy:{tmp_path}/dino.npy").describe()
        assert first["revision"] != second["revision"]


class TestLayouts:
    def test_turtle(self, tmp_path, array):
        """data/representations/PHI/DATA_train.npy"""
        for phi in ("clipvitL14", "dinov2"):
            folder = tmp_path / "data" / "representations" / phi
            folder.mkdir(parents=True)
            np.save(folder / "pets_train.npy", array)
            np.save(folder / "pets_val.npy", array[:2])
        folder = tmp_path / "data" / "representations" / "dinov2"
        for name in (f"{folder}/pets_train.npy", f"{folder}::pets_train"):
            saved = read_saved(f"npy:{name}")
            assert np.array_equal(saved.array, array)
            assert saved.describe()["model"] == "dinov2/pets_train.npy"
        assert len(read_saved(f"npy:{folder}::pets_val").array) == 2

    def test_the_authors(self, tmp_path, array):
        """data/feats/MODEL/DATA_train_feats.npy"""
        folder = tmp_path / "feats" / "siglip"
        folder.mkdir(parents=True)
        np.save(folder / "pets_train_feats.npy", array)
        np.save(folder / "pets_test_feats.npy", array[:2])
        for key in ("pets_train", "pets_train_feats"):
            saved = read_saved(f"npy:{folder}::{key}")
            assert np.array_equal(saved.array, array)

    def test_a_folder_with_one_file(self, tmp_path, array):
        np.save(tmp_path / "clip.npy", array)
        np.save(tmp_path / "labels.npy", np.arange(5))
        (tmp_path / "ids.txt").write_text("a\nb\nc\nd\ne\n")
        saved = read_saved(f"npy:{tmp_path}")
        assert saved.path == tmp_path / "clip.npy"
        assert saved.ids == list("abcde")


class TestWhatCanGoWrong:
    def refusal(self, name):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            read_saved(name)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_files(self, tmp_path, array):
        assert "the file is missing" in self.refusal("npy:")
        assert "no such file" in self.refusal(f"npy:{tmp_path}/nothing.npy")
        np.save(tmp_path / "flat.npy", array[0])
        assert "expected rows x columns" in self.refusal(f"npy:{tmp_path}/flat.npy")
        np.save(tmp_path / "empty.npy", array[:0])
        assert "shape (0, 3)" in self.refusal(f"npy:{tmp_path}/empty.npy")

    def test_folders(self, tmp_path, array):
        assert "holds no feature file" in self.refusal(f"npy:{tmp_path}")
        np.save(tmp_path / "pets_train.npy", array)
        np.save(tmp_path / "pets_val.npy", array)
        said = self.refusal(f"npy:{tmp_path}")
        assert "holds 2 feature files (pets_train, pets_val); choose one" in said
        assert "no feature file 'food'" in self.refusal(f"npy:{tmp_path}::food")

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ("a\nb\n", "holds 2 ids for 5 rows"),
            (
                "a\nb\nc\nb\ne\n",
                "samples 1 and 3 (counting from 0) have the same id 'b'",
            ),
            (
                "a\nb\n\nd\ne\n",
                "row 2 (counting from 0), column 'id': the id is missing",
            ),
        ],
    )
    def test_ids(self, tmp_path, array, ids, message):
        np.save(tmp_path / "dino.npy", array)
        (tmp_path / "dino.ids.txt").write_text(ids)
        assert message in self.refusal(f"npy:{tmp_path}/dino.npy")

    def test_features_are_not_a_model(self, tmp_path):
        with pytest.raises(ValueError, match="holds features and not a model"):
            load_backbone(f"npy:{tmp_path}/dino.npy")
