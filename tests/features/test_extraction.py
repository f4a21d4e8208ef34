"""Extraction: the right rows, whoever does them and however often it is killed."""

import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import sagl
from sagl.features.extraction import extract
from sagl.features.manifest import Manifest
from sagl.features.samples import Unreadable
from sagl.features.saved import read_saved
from sagl.features.store import FeatureStore, read_skipped
from sagl.features.store_tools import verify
from tests.features.toy_extraction import Letters, Words, tree

ROOT = Path(sagl.__file__).parents[2]


def small_files(patch):
    """100 samples are seven pieces in four files."""
    patch.setattr("sagl.features.store_write._PIECE_ROWS", 16)
    patch.setattr("sagl.features.store_write._FILES", 3)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    small_files(monkeypatch)


def two():
    return {"narrow": Letters("narrow", 7), "wide": Letters("wide", 30)}


def run(store, samples=None, models=None, **options):
    options = {"workers": 0, "batch_size": 6} | options
    return extract(samples or Words(), models or two(), store, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A store made in one go."""
    store = tmp_path_factory.mktemp("whole") / "store"
    with pytest.MonkeyPatch.context() as patch:
        small_files(patch)
        run(store)
    return store


class TestWhatIsWritten:
    def test_rows_ids_and_labels(self, undisturbed):
        samples = Words()
        joined = FeatureStore.open(undisturbed).join()
        assert joined.ids == samples.readable
        assert joined.source == samples.describe()
        row = {sample: i for i, sample in enumerate(samples.ids)}
        expected = [samples.labels[row[sample]] for sample in joined.ids]
        assert joined.labels.tolist() == expected
        for name, model in two().items():
            one_by_one = torch.cat(
                [model.embed([model.prepare(samples[row[i]])]) for i in joined.ids]
            )
            features = joined.views[name][:]
            assert features.dtype == np.float16
            np.testing.assert_allclose(features, one_by_one, rtol=2e-3, atol=1e-3)
        assert verify(undisturbed) == []

    def test_what_cannot_be_read_is_listed(self, undisturbed):
        samples = Words()
        missing = sorted(set(samples.ids) - set(samples.readable))
        assert len(missing) == 5
        expected = [(sample, "the text is missing") for sample in missing]
        assert read_skipped(undisturbed) == expected

    def test_the_result_says_so(self, tmp_path):
        done = run(tmp_path / "s")
        assert done.complete
        assert done.samples == 100
        assert done.skipped == 5
        assert done.views["wide"] == {"rows": 95, "dim": 30, "dtype": "float16"}

    def test_the_manifest_describes_the_model(self, undisturbed):
        view = FeatureStore.open(undisturbed).manifest.views["wide"]
        assert view.plan.backbone == {"model": "wide", "sizes": [26, 30]}
        assert view.plan.batch_size == 6
        assert view.plan.n_samples == 100

    def test_no_leftovers(self, undisturbed):
        names = {path.name for path in undisturbed.iterdir()}
        [ids] = undisturbed.glob("ids-*.txt")
        [labels] = undisturbed.glob("labels-*.txt")
        expected = {"manifest.json", "skipped.csv", "narrow", "wide", ".lock"}
        assert names == expected | {ids.name, labels.name}

    def test_other_types(self, tmp_path):
        run(tmp_path / "s", dtype="float32")
        joined = FeatureStore.open(tmp_path / "s").join()
        assert joined.views["narrow"].dtype == np.float32
        with pytest.raises(ValueError, match="not as int8"):
            run(tmp_path / "t", dtype="int8")
        assert not (tmp_path / "t").exists()

    def test_a_source_without_labels(self, tmp_path):
        run(tmp_path / "s", Words(labelled=False))
        assert FeatureStore.open(tmp_path / "s").join().labels is None


class TestOneStoreHoweverItIsMade:
    def test_one_view_after_another(self, tmp_path, undisturbed):
        for name, model in two().items():
            run(tmp_path / "s", models={name: model})
        assert tree(tmp_path / "s") == tree(undisturbed)

    def test_again_changes_nothing(self, tmp_path, undisturbed):
        run(tmp_path / "s")
        before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*.*")}
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)
        after = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*.*")}
        before.pop(tmp_path / "s" / ".lock")
        assert after.items() >= before.items()

    def test_worker_processes(self, tmp_path, undisturbed):
        run(tmp_path / "s", workers=2)
        assert tree(tmp_path / "s") == tree(undisturbed)

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
    def test_shares_in_turn(self, tmp_path, undisturbed, order):
        done = [run(tmp_path / "s", share=(i, 3)).complete for i in order]
        assert done == [False, False, True]
        assert tree(tmp_path / "s") == tree(undisturbed)

    def test_more_processes_than_files(self, tmp_path, undisturbed):
        done = [run(tmp_path / "s", share=(i, 9)).complete for i in range(9)]
        assert done.index(True) == 3  # 100 samples are four files
        assert tree(tmp_path / "s") == tree(undisturbed)

    def test_two_processes_at_once(self, tmp_path, undisturbed):
        context = multiprocessing.get_context("fork")
        processes = [
            context.Process(
                target=run, args=(tmp_path / "s",), kwargs={"share": (i, 2)}
            )
            for i in range(2)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        assert tree(tmp_path / "s") == tree(undisturbed)


def forked(work):
    """Run in a child process; its exit code."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    return process.exitcode


def run_until_step(number, store, samples=None, models=None):
    """Extract, but kill this process before the n-th time something is made to last.

    That is a rename, or an fsync; behind the latter a line may be written in part.
    """
    rename, sync, count = pathlib.Path.replace, os.fsync, 0

    def step():
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def renaming(self, target):
        step()
        return rename(self, target)

    def syncing(handle):
        step()
        return sync(handle)

    pathlib.Path.replace, os.fsync = renaming, syncing
    run(store, samples, models)


class TestKilled:
    def test_before_any_step(self, tmp_path, monkeypatch):
        """Killed before each rename and each fsync in turn, then resumed."""
        monkeypatch.setattr("sagl.features.store_write._FILES", 1)
        samples, model, number = Words(40), {"v": Letters()}, 1
        run(tmp_path / "whole", samples, model)
        while True:
            store = tmp_path / f"{number}"
            code = forked(
                lambda s=store, n=number: run_until_step(n, s, samples, model)
            )
            if code == 0:
                break
            assert code == -signal.SIGKILL
            run(store, samples, model)
            assert tree(store) == tree(tmp_path / "whole"), number
            number += 1
        assert number > 2 * 3  # at the least two for each of three pieces

    def test_again_and_again(self, tmp_path, undisturbed):
        """The same store killed every few steps, until it is done."""
        for _ in range(100):
            if forked(lambda: run_until_step(16, tmp_path / "s")) == 0:
                break
        assert tree(tmp_path / "s") == tree(undisturbed)

    @pytest.mark.parametrize("cut", [1, 20, 300])
    def test_what_was_written_in_part_is_written_again(
        self, tmp_path, undisturbed, cut
    ):
        """Bytes behind, or missing at, the end of features or journal."""
        run(tmp_path / "s", share=(0, 2))
        work = tmp_path / "s" / ".extracting" / "wide"
        features, journal = work / "00000.npy", work / "00000.jsonl"
        features.write_bytes(features.read_bytes()[:-cut])
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(lines[0] + lines[1][:-cut])
        other = work / "00002.npy"
        other.write_bytes(other.read_bytes() + b"x" * cut)
        (work / "00002.jsonl").write_bytes(b'{"rows": 1')
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)

    def test_at_ten_random_moments(self, tmp_path, undisturbed):
        def slowly():
            models = {n: Letters(n, m.dim, 0.005) for n, m in two().items()}
            run(tmp_path / "s", models=models)

        moments = random.Random(0)
        context = multiprocessing.get_context("fork")
        for _ in range(10):
            process = context.Process(target=slowly)
            process.start()
            time.sleep(moments.uniform(0, 0.15))
            process.kill()
            process.join()
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)

    @pytest.mark.slow
    def test_a_program_with_workers_at_ten_random_moments(self, tmp_path):
        """A program of its own, its workers beside it, two shares at a time."""
        command = [sys.executable, "-m", "tests.features.toy_extraction"]

        def start(store, *more):
            arguments = [*command, str(tmp_path / store), *map(str, more)]
            return subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL)

        began = time.monotonic()
        assert start("whole", "--pause", 0.02).wait() == 0
        seconds = time.monotonic() - began
        moments = random.Random(1)
        for _ in range(10):
            started = [
                start("killed", "--pause", 0.02, "--workers", 1, "--shard", f"{i}/2")
                for i in range(2)
            ]
            time.sleep(moments.uniform(0.3, 1.0) * seconds)
            for process in started:
                process.kill()
                process.wait()
        assert start("killed").wait() == 0
        assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
        for process in [start("shared", "--shard", f"{i}/2") for i in range(2)]:
            assert process.wait() == 0
        assert tree(tmp_path / "shared") == tree(tmp_path / "whole")

    @pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
    def test_workers_end_with_it_even_while_they_send(self, tmp_path):
        class Long(Letters):
            def prepare(self, sample):
                (tmp_path / "worker").write_text(str(os.getpid()))
                return "more than a pipe holds" * 10_000

            def embed(self, prepared):
                time.sleep(600)

        process = multiprocessing.get_context("fork").Process(
            target=lambda: run(tmp_path / "s", models={"v": Long()}, workers=1)
        )
        process.start()
        while not (tmp_path / "worker").exists():
            time.sleep(0.1)
        time.sleep(1)
        process.kill()
        process.join()
        worker = Path("/proc", (tmp_path / "worker").read_text(), "stat")
        for _ in range(100):
            if not worker.exists() or ") Z " in worker.read_text():
                return
            time.sleep(0.1)
        pytest.fail("the worker is still there after ten seconds")

    def test_an_error_in_the_middle_keeps_what_is_done(self, tmp_path, undisturbed):
        class Moody(Letters):
            calls = 0

            def embed(self, prepared):
                self.calls += 1
                if self.calls == 9:
                    raise RuntimeError("out of memory")
                return super().embed(prepared)

        models = two() | {"wide": Moody("wide", 30)}
        with pytest.raises(RuntimeError, match="out of memory"):
            run(tmp_path / "s", models=models)
        journals = sorted((tmp_path / "s" / ".extracting" / "wide").glob("*.jsonl"))
        lines = [journal.read_text().count("\n") for journal in journals]
        assert lines == [2]  # two pieces of three batches, all in the first file
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)


class TestDamaged:
    """What is not as it was written when an extraction is taken up is done again."""

    @pytest.mark.parametrize("where", ["features", "journal", "samples.json"])
    @pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
    def test_a_bit(self, tmp_path, undisturbed, where, place):
        run(tmp_path / "s", share=(0, 2))
        work = tmp_path / "s" / ".extracting" / "wide"
        names = {"features": "00000.npy", "journal": "00000.jsonl"}
        flip(work / names.get(where, where), place)
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)

    @pytest.mark.parametrize("place", [0.01, 0.5])
    def test_a_bit_of_a_file_that_has_its_name(self, tmp_path, undisturbed, place):
        """Killed when the files were in place, and the manifest was not written."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Manifest, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path / "s")
        flip(tmp_path / "s" / "narrow" / "00001.npy", place)
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)

    def test_a_file_in_the_place_of_another(self, tmp_path, undisturbed):
        run(tmp_path / "s", share=(0, 2))
        work = tmp_path / "s" / ".extracting" / "wide"
        (work / "00000.npy").write_bytes((work / "00002.npy").read_bytes())
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)


def interrupted(*_):
    raise KeyboardInterrupt


class TestTwoProcessesOnOneFile:
    def test_the_second_is_refused_and_the_first_goes_on(self, tmp_path, undisturbed):
        class Slow(Letters):
            def embed(self, prepared):
                if self.name == "narrow" and self.calls == 4:
                    with pytest.raises(ValueError, match="another process is writing"):
                        run(tmp_path / "s")
                self.calls += 1
                return super().embed(prepared)

            calls = 0

        run(tmp_path / "s", models=two() | {"narrow": Slow("narrow", 7)})
        assert tree(tmp_path / "s") == tree(undisturbed)


class TestTakingUpSomethingElse:
    def test_an_unfinished_view_of_another_kind_is_refused(self, tmp_path):
        run(tmp_path / "s", share=(0, 2))
        before = tree(tmp_path / "s")
        with pytest.raises(ValueError, match=r"begun with batch_size 6 \(now 7\)"):
            run(tmp_path / "s", batch_size=7)
        with pytest.raises(ValueError, match=r"with n_samples 100 \(now 99\)"):
            run(tmp_path / "s", Words(99))
        other = {"narrow": Letters("other", 7)}
        with pytest.raises(ValueError, match="begun with model 'narrow'"):
            run(tmp_path / "s", models=other)
        assert tree(tmp_path / "s") == before

    def test_what_has_no_piece_yet_is_begun_anew(self, tmp_path, undisturbed):
        class Full(Letters):
            def embed(self, prepared):
                raise RuntimeError("out of memory")

        models = {n: Full(n, m.dim) for n, m in two().items()}
        with pytest.raises(RuntimeError):
            run(tmp_path / "s", models=models, batch_size=99)
        run(tmp_path / "s")
        assert tree(tmp_path / "s") == tree(undisturbed)


class TestBadSamples:
    def test_one_model_alone_cannot_take_a_sample(self, tmp_path):
        class Picky(Letters):
            def prepare(self, sample):
                if "z" in sample:
                    raise TypeError("no z,\nplease")
                return super().prepare(sample)

        samples = Words()
        picky = {"narrow": Letters("narrow", 7), "picky": Picky("picky", 9)}
        run(tmp_path / "s", models=picky)
        store = FeatureStore.open(tmp_path / "s")
        text = {sample: samples._texts[i] for i, sample in enumerate(samples.ids)}
        without = [i for i in samples.readable if "z" not in text[i]]
        assert 0 < len(without) < 95
        assert store.ids_of("picky") == without
        assert store.ids_of("narrow") == samples.readable
        reasons = dict(read_skipped(tmp_path / "s"))
        with_z = next(i for i in samples.readable if "z" in text[i])
        assert reasons[with_z] == "picky: TypeError: no z, please"

    def test_features_that_are_not_finite(self, tmp_path):
        class Broken(Letters):
            def embed(self, prepared):
                features = super().embed(prepared)
                features[prepared_a(prepared)] = torch.nan
                return features

        def prepared_a(prepared):
            return torch.stack(list(prepared))[:, 0] == 0  # texts without an a

        samples = Words()
        run(tmp_path / "s", models={"v": Broken("v", 4)})
        text = {sample: samples._texts[i] for i, sample in enumerate(samples.ids)}
        expected = [i for i in samples.readable if "a" in text[i]]
        assert FeatureStore.open(tmp_path / "s").ids == expected
        assert ("v: its features are not finite") in dict(
            read_skipped(tmp_path / "s")
        ).values()

    def test_values_beyond_half_precision(self, tmp_path):
        class Large(Letters):
            def embed(self, prepared):
                return super().embed(prepared) * 0 + 7e4

        with pytest.raises(
            ValueError, match="'v' has values up to 70000, which float16"
        ):
            run(tmp_path / "s", models={"v": Large("v", 4)})
        run(tmp_path / "s2", models={"v": Large("v", 4)}, dtype="float32")
        assert FeatureStore.open(tmp_path / "s2")["v"][0, 0] == 7e4

    def test_not_one_can_be_used(self, tmp_path):
        with pytest.raises(ValueError, match=r"not one of 100 .* text 0: the text is"):
            run(tmp_path / "s", Words(broken=1))
        # When the samples are mended, the same command reads them again.
        run(tmp_path / "s")
        assert len(FeatureStore.open(tmp_path / "s").ids) == 95

    def test_a_whole_piece_of_unreadable_samples(self, tmp_path):
        samples = Words()
        gone = set(sorted(samples.ids)[16:32])

        class Gap(Words):
            def __getitem__(self, row):
                if self.ids[row] in gone:
                    raise Unreadable("gone")
                return super().__getitem__(row)

        run(tmp_path / "s", Gap())
        store = FeatureStore.open(tmp_path / "s")
        assert store.ids == [i for i in samples.readable if i not in gone]
        assert len(store["wide"][:]) == len(store.ids)
        rows = [shard.rows for shard in store.manifest.views["wide"].shards]
        assert rows[0] == sum(i in store.ids for i in sorted(samples.ids)[:32])
        assert sum(rows) == len(store.ids)

    def test_names_that_no_file_can_keep(self, tmp_path):
        samples = Words()
        samples.ids = [*samples.ids[:-2], "two\nlines", "not \udce4 UTF-8"]
        run(tmp_path / "s", samples)
        assert len(FeatureStore.open(tmp_path / "s").ids) == 93
        reasons = dict(read_skipped(tmp_path / "s"))
        assert reasons["two\nlines"] == "it holds a line break"
        assert reasons["not \\udce4 UTF-8"] == "it is not UTF-8"

    def test_a_worker_that_dies(self, tmp_path):
        class Deadly(Words):
            def __getitem__(self, row):
                if row == 30:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().__getitem__(row)

        with pytest.raises(ValueError, match="fewer --workers"):
            run(tmp_path / "s", Deadly(), workers=1)


class TestSavedFeatures:
    @pytest.fixture
    def saved(self, tmp_path):
        def save(ids, array):
            np.save(tmp_path / "saved.npy", array)
            if ids is not None:
                lines = "".join(f"{sample}\n" for sample in ids)
                (tmp_path / "saved.ids.txt").write_text(lines)
            return read_saved(f"npy:{tmp_path / 'saved.npy'}")

        return save

    def test_by_id(self, tmp_path, saved):
        samples = Words()
        ids = sorted(samples.ids, reverse=True)[:60]
        array = np.arange(60 * 3.0).reshape(60, 3)
        given = saved([*ids, "nobody"], np.vstack([array, array[:1]]))
        run(tmp_path / "s", models={"saved": given} | two())
        store = FeatureStore.open(tmp_path / "s")
        assert store.ids_of("saved") == sorted(ids)
        features = store.views(["saved"])["saved"][:]
        assert features.dtype == np.float64
        np.testing.assert_array_equal(features, array[::-1])
        assert ("text 0", "saved: not among the saved features") in read_skipped(
            tmp_path / "s"
        )

    def test_by_position(self, tmp_path, saved):
        samples = Words()
        array = np.arange(100).reshape(100, 1)
        run(tmp_path / "s", models={"saved": saved(None, array)})
        store = FeatureStore.open(tmp_path / "s")
        expected = np.argsort(np.array(samples.ids))
        np.testing.assert_array_equal(store["saved"][:, 0], expected)
        assert store["saved"].dtype == np.float32

    @pytest.mark.parametrize(
        ("ids", "rows", "message"),
        [
            (None, 99, "99 saved rows for 100 samples"),
            (["x", "y"], 2, "not one sample is among .* called 'text .*, .* row 'x'"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, tmp_path, saved, ids, rows, message):
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "s", models={"saved": saved(ids, np.ones((rows, 2)))})
        assert not (tmp_path / "s").exists()


class TestRefused:
    def test_before_anything_is_written(self, tmp_path):
        def refused(match, **options):
            with pytest.raises(ValueError, match=match):
                run(tmp_path / "s", **options)
            assert not (tmp_path / "s").exists()

        eye = Letters("eye")
        eye.kind = "image"
        refused("eye embeds images, the samples are texts", models={"v": eye})
        refused("cannot be a view's name", models={"a/b": Letters()})
        refused("batch_size must be at least 1; got 0", batch_size=0)
        refused("share 2/2: expected i/n", share=(2, 2))
        twice = Words()
        twice.ids = ["x"] * 100
        refused("the same id 'x'", samples=twice)
        with pytest.raises(ValueError, match="no backbone given"):
            extract(Words(), {}, tmp_path / "s")

    def test_features_of_another_shape(self, tmp_path):
        liar = Letters()
        liar.dim = 3
        with pytest.raises(ValueError, match=r"shape \(6, 24\) for 6 .* \(6, 3\)"):
            run(tmp_path / "s", models={"v": liar})


def test_progress_counts_samples(tmp_path, capsys):
    run(tmp_path / "s", progress=True)
    assert "extracting: samples 100 of 100" in capsys.readouterr().err
    run(tmp_path / "t", progress=False)
    assert capsys.readouterr().err == ""


def test_the_global_generator_is_left_alone(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    run(tmp_path / "s")
    assert torch.rand(1) == expected
