"""Files that change under a run are noticed before they are read again."""

import os

import numpy as np
import pytest

from sagl import Views
from sagl.features.split import read_views
from sagl.features.store import FeatureStore, write_view
from sagl.unchanged import Unchanged


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "wide.npy"
    np.save(path, np.arange(60.0).reshape(20, 3))
    return path


def shrink(path):
    os.truncate(path, path.stat().st_size - 100)


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))


def passes(views):
    """Every way in which a fit goes over its data."""
    yield lambda: views.take(np.array([3, 1]))
    yield lambda: list(views.blocks(7))
    yield views.fingerprint
    yield views.check_values
    yield views.check_spread


@pytest.mark.parametrize("change", [shrink, touch])
def test_no_pass_goes_over_a_file_that_has_changed(file, change):
    views = read_views([f"wide={file}"])
    parts = [views, Views(views), views[2:9], views.as_fitted(["wide"], [3])]
    for part in parts:
        for each in passes(part):
            each()
    change(file)
    for part in parts:
        for each in passes(part):
            with pytest.raises(ValueError, match=r"wide\.npy has changed while it was"):
                each()


def test_the_error_says_how_it_changed(file):
    unchanged = Unchanged([file])
    shrink(file)
    with pytest.raises(ValueError, match=r"\(608 bytes, now 508\); put back what it"):
        unchanged.check()
    file.write_bytes(b"x" * 608)
    os.utime(file, ns=(0, 0))
    with pytest.raises(ValueError, match=r"\(it was written to\)"):
        unchanged.check()


def test_what_was_removed_can_still_be_read(file):
    views = read_views([f"wide={file}"])
    file.unlink()
    assert views.take(np.array([1]))[0].tolist() == [[3, 4, 5]]


def test_a_map_that_may_be_written_to_is_its_owners(tmp_path, file):
    array = np.load(file, mmap_mode="r+")
    views = Views({"wide": array})
    array[:] = 1
    touch(file)
    assert views.take(np.array([1]))[0].tolist() == [[1, 1, 1]]


def test_rows_picked_from_a_file_are_there_for_good(file):
    picked = read_views([f"wide={file}"])[np.array([0, 1])]
    shrink(file)
    assert picked.take(np.array([1]))[0].tolist() == [[3, 4, 5]]


def test_a_store(tmp_path):
    for name, width in (("a", 3), ("b", 2)):
        write_view(tmp_path / "s", name, ["x", "y"], np.ones((2, width), np.float32))
    views = FeatureStore.open(tmp_path / "s").views()
    views.take(np.array([0]))
    shrink(tmp_path / "s" / "b" / "00000.npy")
    with pytest.raises(ValueError, match=r"b/00000\.npy has changed while it was in"):
        views.take(np.array([0]))
