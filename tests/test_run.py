"""A saved run comes back exactly; a damaged or half-written one never does."""

import csv
import errno
import json
import os
import pickle
import resource
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

import sagl.run
import sagl.storage
from sagl import SAGL, Views
from sagl.card import CARD
from sagl.search.config import SearchConfig
from sagl.training import Callback
from tests.conftest import QUICK, clustered_views
from tests.runs import change_config

DATA = Path(__file__).parent / "data"
FILES = {
    "config.json",
    "model.safetensors",
    "anchors.safetensors",
    "history.jsonl",
    "labels.csv",
}


def fit(views, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training may leave clusters empty
        defaults = {"n_clusters": 4, "steps": 60, "search": QUICK, "random_state": 0}
        return SAGL(**defaults | params).fit(views)


def names(directory):
    return {path.name for path in directory.iterdir()}


@pytest.fixture(scope="module")
def model(views):
    return fit(views, gate="shrink", n_anchors=100, gamma=7.5)


@pytest.fixture
def run(model, tmp_path):
    model.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def others():
    """Samples that the model has not seen."""
    return clustered_views(70, seed=3)[0]


class TestRoundTrip:
    def test_it_answers_with_the_same_bits(self, model, run, others):
        loaded = SAGL.load(run)
        np.testing.assert_array_equal(
            loaded.predict_proba(others), model.predict_proba(others)
        )
        np.testing.assert_array_equal(loaded.predict(others), model.predict(others))
        np.testing.assert_array_equal(loaded.transform(others), model.transform(others))

    @pytest.mark.parametrize(
        "params",
        [
            {"recipe": "released", "steps": 30},
            {"graph": "identity"},
            {"graph": "dense", "gate": "sharpen"},
            {"alpha": 2.0, "self_loops": False, "gate": "none"},
        ],
        ids=str,
    )
    def test_so_does_every_variant(self, views, others, tmp_path, params):
        model = fit(views, **params)
        model.save(tmp_path / "run")
        loaded = SAGL.load(tmp_path / "run")
        np.testing.assert_array_equal(
            loaded.predict_proba(others), model.predict_proba(others)
        )
        graphs = (one.attention_graph(others) for one in (loaded, model))
        for ours, theirs in zip(*graphs, strict=True):
            assert (ours != theirs).nnz == 0

    def test_all_that_was_learned_is_there(self, model, run):
        loaded = SAGL.load(run)
        assert loaded.labels_.dtype == model.labels_.dtype
        np.testing.assert_array_equal(loaded.labels_, model.labels_)
        np.testing.assert_array_equal(loaded.confidence_, model.confidence_)
        assert loaded.history_ == model.history_
        assert loaded.settings_ == model.settings_
        assert loaded.n_steps_ == model.n_steps_
        assert loaded.view_names_ == model.view_names_
        assert loaded.view_widths_ == model.view_widths_
        assert loaded.n_features_in_ == model.n_features_in_
        assert len(loaded.anchors_) == len(model.anchors_)
        for ours, theirs in zip(loaded.anchors_, model.anchors_, strict=True):
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours, theirs)
        state = model.network_.state_dict()
        assert loaded.network_.state_dict().keys() == state.keys()
        for name, tensor in loaded.network_.state_dict().items():
            assert torch.equal(tensor, state[name])
        assert not loaded.network_.training

    def test_so_are_the_clusters_of_the_anchors(self, model, run):
        assert len(model.anchor_labels_) == len(model.anchors_[0]) == 100
        assert torch.equal(SAGL.load(run).anchor_labels_, model.anchor_labels_)

    def test_a_model_without_a_search_has_none(self, views, tmp_path, others):
        model = fit(views, refine=False)
        model.save(tmp_path / "run")
        loaded = SAGL.load(tmp_path / "run")
        assert model.anchor_labels_ is loaded.anchor_labels_ is None
        np.testing.assert_array_equal(
            loaded.predict_proba(others), model.predict_proba(others)
        )

    def test_parameters_survive(self, model, run):
        objects = ("device", "callbacks", "random_state")
        written, read = model.get_params(), SAGL.load(run).get_params()
        for name in objects:
            written.pop(name), read.pop(name)
        assert read == written

    def test_a_generator_is_not_written(self, views, tmp_path):
        fit(views, random_state=np.random.RandomState(0)).save(tmp_path / "run")
        assert SAGL.load(tmp_path / "run").random_state is None

    def test_callbacks_are_not_written(self, views, tmp_path):
        model = fit(views, steps=5, callbacks=[Callback()])
        model.save(tmp_path / "run")
        assert SAGL.load(tmp_path / "run").callbacks is None

    def test_a_model_of_one_cut_array_takes_one_array_again(self, views, tmp_path):
        X = np.hstack([array for _, array in views.items()])
        model = fit(X, view_sizes=(12, 6))
        model.save(tmp_path / "run")
        loaded = SAGL.load(tmp_path / "run")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    def test_a_loaded_model_saves_the_same_bytes(self, run, tmp_path):
        SAGL.load(run, device="auto").save(tmp_path / "again")
        for name in FILES:
            assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()

    def test_a_loaded_model_fits_as_the_first_did(self, views, model, run):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = SAGL.load(run).fit(views)
        np.testing.assert_array_equal(again.labels_, model.labels_)
        assert again.history_ == model.history_

    def test_view_names_in_any_script(self, views, tmp_path):
        odd = Views({'β, "dîno"\n': views["wide"], "狗": views["narrow"]})
        fit(odd, steps=5).save(tmp_path / "run")
        assert SAGL.load(tmp_path / "run").view_names_ == odd.names

    @pytest.mark.parametrize("kind", [str, lambda path: path])
    def test_places_are_strings_or_paths(self, model, tmp_path, kind):
        place = tmp_path / "deep" / "er"
        model.save(kind(place))
        assert names(place) == FILES | {CARD}
        SAGL.load(kind(place))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_clusters", np.int64(4)),
            ("view_sizes", np.array([12, 6])),
            ("view_sizes", [np.int64(12), np.int64(6)]),
        ],
        ids=str,
    )
    def test_numpy_parameters_survive(self, views, tmp_path, name, value):
        X = np.hstack([array for _, array in views.items()])
        model = fit(X, **{"view_sizes": [12, 6], "steps": 5, name: value})
        model.save(tmp_path / "run")
        loaded = SAGL.load(tmp_path / "run")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


class TestFiles:
    def test_these_and_no_others(self, run):
        assert names(run) == FILES | {CARD}

    def test_no_pickle_is_written_or_read(self, model, tmp_path, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("pickle was used")

        for module in (pickle, torch):
            for name in ("dump", "dumps", "load", "loads", "save", "Unpickler"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, refuse)
        monkeypatch.setattr(np, "load", refuse)
        model.save(tmp_path / "run")
        SAGL.load(tmp_path / "run")

    def test_labels_are_a_table_for_people(self, model, run):
        with (run / "labels.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [int(row["row"]) for row in rows] == list(range(240))
        assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
        assert [float(r["confidence"]) for r in rows] == model.confidence_.tolist()

    def test_history_is_one_record_per_line(self, model, run):
        lines = (run / "history.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == model.history_
        assert len(lines) >= 2

    def test_config_says_what_was_done(self, model, run):
        config = json.loads((run / "config.json").read_text())
        assert config["format"] == sagl.run.FORMAT
        assert config["sagl"] == sagl.__version__
        assert config["settings"] == model.settings_.as_dict()
        assert config["n_samples"] == 240
        assert config["n_steps"] == model.n_steps_
        assert config["views"] == [
            {"name": "wide", "width": 12},
            {"name": "narrow", "width": 6},
        ]

    def test_every_other_file_has_a_checksum(self, run):
        config = json.loads((run / "config.json").read_text())
        assert config["sha256"] == {
            name: sagl.storage.sha256(run / name) for name in FILES - {"config.json"}
        }


def refused(place):
    """The one line with which a load is refused; it must name the place."""
    with pytest.raises(ValueError, match=str(place)) as caught:
        SAGL.load(place)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestRefusedLoads:
    def test_an_empty_directory(self, tmp_path):
        assert "holds no run: there is no config.json" in refused(tmp_path)

    def test_no_directory(self, tmp_path):
        assert "holds no run" in refused(tmp_path / "nowhere")

    def test_a_file(self, run):
        assert "is not a run directory" in refused(run / "config.json")

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"not json", b"\xff\xfe\0", b"[]", b"3", b"null", b'"x"', b"{}"],
    )
    def test_config_that_is_none(self, run, content):
        (run / "config.json").write_bytes(content)
        assert "config.json is damaged" in refused(run)

    @pytest.mark.parametrize(
        "key", ["format", "params", "settings", "views", "sha256", "n_steps"]
    )
    def test_config_without_a_key(self, run, key):
        change_config(run, lambda config: config.pop(key))
        message = refused(run)
        assert "config.json is damaged" in message
        assert key in message or key == "format"

    def test_settings_without_a_key(self, run):
        change_config(run, lambda config: config["settings"].pop("alpha"))
        message = refused(run)
        assert "config.json is damaged" in message
        assert "'alpha'" in message

    def test_a_view_without_its_width(self, run):
        change_config(run, lambda config: config["views"][1].pop("width"))
        assert "'width'" in refused(run)

    def test_a_newer_format_asks_for_an_upgrade(self, run):
        change_config(run, lambda config: config.update(format=7, sagl="9.1"))
        message = refused(run)
        assert "format 7" in message
        assert "sagl 9.1" in message
        assert "upgrade sagl" in message

    def test_an_older_format_asks_for_a_new_fit(self, run):
        change_config(run, lambda config: config.update(format=1))
        with pytest.raises(ValueError, match=r"format 1, by an older sagl.*fit again"):
            SAGL.load(run)

    def test_a_run_from_before_there_were_voters_is_read(self, views, tmp_path):
        model = fit(views, refine=False)
        run = tmp_path / "run"
        model.save(run)
        change_config(run, lambda config: config.update(format=3))
        change_config(run, lambda config: config.pop("voters"))
        np.testing.assert_array_equal(SAGL.load(run).predict(views), model.labels_)

    def test_a_run_of_0_1_answers_as_it_did(self, tmp_path):
        """Its network has no heads, and the samples near one asked about vote."""
        model = SAGL.load(DATA / "run-0.1")
        with np.load(DATA / "run-0.1-answers.npz") as kept:
            q = model.predict_proba({"a": kept["a"], "b": kept["b"]})
            np.testing.assert_allclose(q, kept["q"], rtol=0, atol=1e-9)
            assert len(np.unique(q.argmax(axis=1))) == 8
        assert model.voters_ is not None
        model.save(tmp_path / "again")
        assert SAGL.load(tmp_path / "again").voters_.weight == model.voters_.weight

    def test_voters_that_are_not_where_they_should_be(self, tmp_path):
        run = shutil.copytree(DATA / "run-0.1", tmp_path / "run")
        change_config(run, lambda config: config["voters"]["shares"].append(0.5))
        assert "'voters.2'" in refused(run)

    def test_a_newer_format_may_differ_in_all_else(self, run):
        (run / "config.json").write_text('{"format": 9}')
        assert "upgrade sagl" in refused(run)

    def test_unknown_settings_are_refused_but_in_older_runs(self, model, run):
        change_config(run, lambda config: config["settings"].update(colour="red"))
        assert "'colour' is not known in settings" in refused(run)
        change_config(run, lambda config: config.update(format=5))
        assert SAGL.load(run).settings_ == model.settings_

    @pytest.mark.parametrize("name", sorted(FILES))
    def test_a_missing_file(self, run, name):
        (run / name).unlink()
        assert name in refused(run)

    @pytest.mark.parametrize("name", sorted(FILES - {"config.json"}))
    @pytest.mark.parametrize("place", [0, 0.5, -1])
    def test_an_altered_byte(self, run, name, place):
        content = bytearray((run / name).read_bytes())
        i = int(place * len(content)) if place >= 0 else -1
        content[i] ^= 1
        (run / name).write_bytes(content)
        assert f"{name} is damaged: its content is not what was written" in refused(run)

    @pytest.mark.parametrize("name", sorted(FILES - {"config.json"}))
    @pytest.mark.parametrize("keep", [0, 0.5])
    def test_a_truncated_file(self, run, name, keep):
        content = (run / name).read_bytes()
        (run / name).write_bytes(content[: int(keep * len(content))])
        assert f"{name} is damaged" in refused(run)

    @pytest.mark.parametrize(
        "change",
        [
            lambda config: config.update(sha256=[]),
            lambda config: config["sha256"].pop("history.jsonl"),
            lambda config: config.update(settings=None),
            lambda config: config.update(params=None),
            lambda config: config["params"].pop("n_clusters"),
            lambda config: config["params"].update(colour="red"),
            lambda config: config["views"][0].update(width=5),
            lambda config: config["settings"].update(n_clusters=5),
            lambda config: config.update(format=0),
        ],
        ids=[
            "sha256 a list",
            "no checksum",
            "no settings",
            "no params",
            "no n_clusters",
            "unknown parameter",
            "other width",
            "other number of clusters",
            "format 0",
        ],
    )
    def test_an_edited_config(self, run, change):
        change_config(run, change)
        assert "config.json" in refused(run)

    @pytest.mark.parametrize(
        "change",
        [
            lambda config: config["settings"].update(alpha=1.6),
            lambda config: config["settings"].update(seed=1),
            lambda config: config.update(voters=None, checksum=None),
            lambda config: config.update(n_steps=1),
            lambda config: config["views"].reverse(),
        ],
    )
    def test_a_config_that_is_sound_but_not_what_was_written(self, run, change):
        change_config(run, change, sign=False)
        assert "config.json is damaged" in refused(run)

    def test_a_config_without_its_checksum(self, run):
        change_config(run, lambda config: config.pop("checksum"), sign=False)
        assert "'checksum' is missing" in refused(run)

    def test_a_config_that_is_laid_out_otherwise_is_the_same(self, model, run):
        change_config(run, lambda config: None, sign=False)
        assert SAGL.load(run).settings_ == model.settings_

    def test_parts_of_another_run(self, views, run, tmp_path):
        other = tmp_path / "other"
        fit(views, gate="shrink", n_anchors=100, gamma=7.5, random_state=1).save(other)
        for name in sorted(FILES - {"config.json"}):
            mixed = shutil.copytree(run, tmp_path / f"mixed {name}")
            shutil.copy(other / name, mixed / name)
            assert f"{name} is damaged" in refused(mixed)

    def test_files_of_somebody_else_among_the_parts(self, run):
        for name in ("graph.npz", "source.json"):
            (run / name).write_text("mine")
            assert f"{name} is not of this run" in refused(run)
            (run / name).unlink()

    @pytest.mark.parametrize(
        "text",
        [
            *('{"format": 1e400}', '{"format": -1}', '{"format": true}', "[" * 10_000),
            *(
                '{"format": "6"}',
                '{"format": 6.0}',
                '{"format": NaN}',
                '{"format": [6]}',
            ),
            '{"format": 1' + "0" * 5_000 + "}",
            '{"format": 6, "views": ' + "[" * 990 + "]" * 990 + "}",
        ],
        ids=lambda text: text[:24],
    )
    def test_a_format_that_is_none(self, run, text):
        (run / "config.json").write_text(text)
        assert "config.json is damaged" in refused(run)

    def test_a_config_that_is_too_large_to_be_one(self, run):
        with (run / "config.json").open("r+b") as file:
            file.truncate(1 << 40)  # no disk is filled
        assert "config.json is damaged" in refused(run)

    @pytest.mark.parametrize(
        "change",
        [
            lambda config: config["settings"].update(n_clusters=1 << 30),
            lambda config: config["views"][0].update(width=1 << 30),
            lambda config: config["views"].extend(
                {"name": f"{i}", "width": 9} for i in range(100_000)
            ),
        ],
        ids=["clusters", "width", "views"],
    )
    def test_sizes_that_no_memory_holds(self, run, change):
        """They are compared with the tensors, and no memory is taken for them."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        change_config(run, change)
        assert "config.json is damaged" in refused(run)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**18


def not_saved(model, place):
    """The one line with which a save is refused; it must name the place."""
    with pytest.raises(ValueError, match=str(place)) as caught:
        model.save(place)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def full_disk(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestRefusedSaves:
    def test_a_directory_that_holds_a_run(self, model, run):
        before = {name: (run / name).read_bytes() for name in names(run)}
        assert "already holds a run" in not_saved(model, run)
        assert {name: (run / name).read_bytes() for name in names(run)} == before

    def test_a_file(self, model, tmp_path):
        (tmp_path / "file").write_text("mine")
        assert "is a file" in not_saved(model, tmp_path / "file")
        assert (tmp_path / "file").read_text() == "mine"

    def test_below_a_file(self, model, tmp_path):
        (tmp_path / "file").write_text("mine")
        assert "cannot be written" in not_saved(model, tmp_path / "file" / "run")
        assert (tmp_path / "file").read_text() == "mine"

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0,
        reason="root may write anywhere",
    )
    def test_a_directory_without_permission(self, model, tmp_path):
        (tmp_path / "locked").mkdir(mode=0o500)
        assert "cannot be written" in not_saved(model, tmp_path / "locked")

    @pytest.mark.parametrize("survivors", range(6))
    def test_a_disk_that_fills_up_leaves_nothing(
        self, model, tmp_path, monkeypatch, survivors
    ):
        """Whichever of the six files is the first that does not fit."""
        place, real = tmp_path / "run", os.fsync
        written = []

        def fsync(descriptor):
            if len(written) == survivors:
                full_disk()
            written.append(descriptor)
            real(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(sagl.storage.os, "fsync", fsync)
            message = not_saved(model, place)
        assert "No space left on device; free some space" in message
        assert len(written) == survivors
        assert names(place) == set()
        assert "holds no run" in refused(place)

        model.save(place)  # after some space was freed
        assert names(place) == FILES | {CARD}
        np.testing.assert_array_equal(SAGL.load(place).labels_, model.labels_)

    def test_a_disk_that_is_full_before_a_tensor_is_written(
        self, model, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(sagl.run, "write_tensors", full_disk)
        assert "No space left" in not_saved(model, tmp_path / "run")
        assert names(tmp_path / "run") == set()

    def test_another_error_says_that_nothing_was_kept(
        self, model, tmp_path, monkeypatch
    ):
        def broken(*args):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(sagl.run, "write_json", broken)
        message = not_saved(model, tmp_path / "run")
        assert "Input/output error; nothing was kept" in message
        assert names(tmp_path / "run") == set()

    def test_a_model_that_is_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            SAGL(3).save(tmp_path / "run")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("error", [None, full_disk])
    def test_a_labels_file_of_somebody_else_survives(
        self, model, tmp_path, monkeypatch, error
    ):
        (tmp_path / "labels.csv").write_text("mine")
        if error:
            monkeypatch.setattr(sagl.run, "write_tensors", error)
        with pytest.raises(ValueError, match=str(tmp_path)):
            model.save(tmp_path)
        assert (tmp_path / "labels.csv").read_text() == "mine"


def test_an_estimated_number_and_the_score_come_back(views, tmp_path):
    model = fit(views, n_clusters="auto")
    model.save(tmp_path / "run")
    again = SAGL.load(tmp_path / "run")
    assert again.n_clusters == "auto"
    assert again.n_clusters_ == 4
    assert again.cluster_count_ == model.cluster_count_
    assert again.score_ == model.score_
    assert again.view_weights_ == model.view_weights_
    assert again.cluster_sizes_ == model.cluster_sizes_ == "balanced"


def test_sizes_of_clusters_come_back(views, tmp_path):
    model = fit(views, steps=5, cluster_sizes="any")
    model.save(tmp_path / "run")
    again = SAGL.load(tmp_path / "run")
    assert again.cluster_sizes_ == model.cluster_sizes_ == "any"
    assert again.cluster_sizes == again.settings_.cluster_sizes == "any"
    fit(views, steps=5, refine=False).save(tmp_path / "not refined")
    assert not hasattr(SAGL.load(tmp_path / "not refined"), "cluster_sizes_")


def test_a_run_from_before_sizes_could_be_free_is_even(run):
    config = json.loads((run / "config.json").read_text())
    for place in (config, config["settings"], config["params"]):
        del place["cluster_sizes"]
    del config["checksum"]
    (run / "config.json").write_text(json.dumps(config | {"format": 4}))
    again = SAGL.load(run)
    assert again.settings_.cluster_sizes == "balanced"
    assert not hasattr(again, "cluster_sizes_")


def test_the_numbers_of_the_search_come_back(views, tmp_path):
    search = SearchConfig(starts=2, proposals=4)
    model = SAGL(4, steps=2, search=search, random_state=0).fit(views)
    model.save(tmp_path / "run")
    again = SAGL.load(tmp_path / "run")
    assert again.settings_.search == model.settings_.search == search
    assert SearchConfig.of(again.search) == search
