"""Views: every way in, every way to take rows, and every input that is refused."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.sparse import csr_matrix, dok_matrix
from sklearn.model_selection import train_test_split

import sagl.views
from sagl import SAGL, Views


def matrix(rows=6, width=4, seed=0, dtype="float64"):
    values = np.random.default_rng(seed).normal(size=(rows, width))
    return (values * 10).astype(dtype)


def on_disk(path, array):
    """The array as a memory-mapped .npy file."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def maps_file(array, mapped):
    """Whether this is the mapped file itself, or a window onto it, not a copy."""
    return isinstance(array, np.memmap) and np.shares_memory(array, mapped)


@pytest.fixture
def views():
    return Views({"dino": matrix(6, 4), "clip": matrix(6, 3, seed=1)})


class TestConstruction:
    def test_a_mapping_keeps_names_order_and_arrays(self):
        late, early = matrix(6, 2), matrix(6, 5, seed=1)
        views = Views({"z": late, "a": early})
        assert views.names == ("z", "a")
        assert views.widths == (2, 5)
        assert views["z"] is late
        assert views["a"] is early

    @pytest.mark.parametrize("kind", [list, tuple])
    def test_unnamed_views_are_numbered(self, kind):
        arrays = kind([matrix(5, 2), matrix(5, 3), matrix(5, 4)])
        views = Views(arrays)
        assert views.names == ("view0", "view1", "view2")
        assert views.widths == (2, 3, 4)
        assert all(views[f"view{i}"] is array for i, array in enumerate(arrays))

    def test_one_array_is_one_view(self):
        array = matrix()
        views = Views(array)
        assert views.names == ("view0",)
        assert views["view0"] is array

    def test_one_matrix_written_as_lists_is_one_view(self):
        views = Views([[1, 2, 3], [4, 5, 6]])
        assert views.names == ("view0",)
        np.testing.assert_array_equal(views["view0"], [[1, 2, 3], [4, 5, 6]])

    @pytest.mark.parametrize("sizes", [[3, 1, 4], (3, 1, 4), np.array([3, 1, 4])])
    def test_view_sizes_cut_columns_in_order(self, sizes):
        array = matrix(5, 8)
        views = Views(array, view_sizes=sizes)
        assert views.names == ("view0", "view1", "view2")
        np.testing.assert_array_equal(views["view0"], array[:, :3])
        np.testing.assert_array_equal(views["view1"], array[:, 3:4])
        np.testing.assert_array_equal(views["view2"], array[:, 4:])
        assert all(np.shares_memory(part, array) for _, part in views.items())

    def test_views_of_views_are_the_same_arrays(self, views):
        again = Views(views)
        assert again.names == views.names
        assert all(again[name] is array for name, array in views.items())

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
    def test_torch_tensors_share_their_memory(self, dtype):
        tensor = torch.arange(12).reshape(4, 3).to(dtype)
        for views in (Views({"t": tensor}), Views([tensor]), Views(tensor)):
            (array,) = (array for _, array in views.items())
            np.testing.assert_array_equal(array, tensor.numpy())
            assert np.shares_memory(array, tensor.numpy())

    def test_a_tensor_that_needs_a_gradient_is_taken(self):
        tensor = torch.ones(3, 2, requires_grad=True)
        np.testing.assert_array_equal(Views([tensor])["view0"], np.ones((3, 2)))

    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u1", "?", ">f4"])
    def test_all_real_dtypes_are_kept(self, dtype):
        array = np.arange(6).reshape(3, 2).astype(dtype)
        assert Views([array])["view0"].dtype == np.dtype(dtype)

    def test_memory_maps_stay_on_disk(self, tmp_path):
        mapped = on_disk(tmp_path / "x.npy", matrix(8, 6, dtype="float16"))
        assert Views({"x": mapped})["x"] is mapped
        assert Views([mapped])["view0"] is mapped
        assert maps_file(Views({"x": mapped})[2:5]["x"], mapped)
        for _, part in Views(mapped, view_sizes=[2, 4]).items():
            assert maps_file(part, mapped)


class TestDescription:
    def test_lengths_and_names(self, views):
        assert len(views) == 6
        assert views.shape == (6, 7)
        assert views.names == ("dino", "clip")
        assert views.widths == (4, 3)

    def test_repr_counts_samples_and_columns(self, views):
        assert repr(views) == "Views(6 samples: dino 4, clip 3)"

    def test_a_notebook_shows_a_row_per_view(self):
        views = Views({"<b>dino</b>": np.zeros((5, 8)), "clip": np.zeros((5, 3))})
        html = views._repr_html_()
        assert "5 samples in 2 views" in html
        assert "<b>" not in html
        assert "<td>&lt;b&gt;dino&lt;/b&gt;</td><td>8</td><td>float64</td>" in html

    def test_items_are_names_and_matrices_in_order(self, views):
        items = list(views.items())
        assert [name for name, _ in items] == ["dino", "clip"]
        assert all(array is views[name] for name, array in items)


ROWS = {
    "slice": slice(1, 5, 2),
    "negative slice": slice(None, None, -1),
    "positions": np.array([4, 0, 0, 2]),
    "negative positions": np.array([-1, 1]),
    "list": [3, 1],
    "mask": np.array([True, False, True, True, False, False]),
    "positions and ...": (np.array([5, 2]), ...),
    "mask and ...": (np.array([False, True] * 3), ...),
}


class TestIndexing:
    @pytest.mark.parametrize("key", ROWS.values(), ids=ROWS)
    def test_rows_of_every_view(self, views, key):
        part = views[key]
        assert isinstance(part, Views)
        assert part.names == views.names
        for name, array in views.items():
            np.testing.assert_array_equal(part[name], array[key])

    def test_scikit_learn_splits_them(self, views):
        left, right = train_test_split(views, test_size=2, random_state=0)
        positions = train_test_split(np.arange(6), test_size=2, random_state=0)
        for part, rows in zip((left, right), positions, strict=True):
            for name, array in views.items():
                np.testing.assert_array_equal(part[name], array[rows])

    @pytest.mark.parametrize("key", [2, -1, np.int64(2)])
    def test_an_integer_is_refused(self, views, key):
        with pytest.raises(TypeError, match=rf"views\[{key}\].*views\[{key}:{key + 1}"):
            views[key]

    def test_an_integer_with_an_ellipsis_is_refused(self, views):
        with pytest.raises(TypeError, match=r"views\[2\] is not a set of samples"):
            views[2, ...]

    def test_an_unknown_name_lists_the_known(self, views):
        with pytest.raises(KeyError, match=r"'dinp'.*dino, clip"):
            views["dinp"]

    def test_no_rows_left_is_refused(self, views):
        with pytest.raises(ValueError, match=r"'dino' has no rows \(shape \(0, 4\)\)"):
            views[np.zeros(6, dtype=bool)]


class TestReading:
    @pytest.mark.parametrize(
        "rows", [[0], [5, 0, 3], [2, 2, 2, 0], [4, 3, 2, 1, 0], range(6)]
    )
    @pytest.mark.parametrize("mapped", [False, True])
    def test_take_gives_float32_rows_in_the_given_order(self, tmp_path, rows, mapped):
        half, double = matrix(6, 4, dtype="float16"), matrix(6, 3, seed=1)
        rows = np.array(rows)
        expected = [half[rows].astype(np.float32), double[rows].astype(np.float32)]
        if mapped:
            half = on_disk(tmp_path / "half.npy", half)
            double = on_disk(tmp_path / "double.npy", double)
        taken = Views({"half": half, "double": double}).take(rows)
        for got, want in zip(taken, expected, strict=True):
            assert got.dtype == np.float32
            assert got.flags.c_contiguous
            np.testing.assert_array_equal(got, want)

    def test_take_does_not_hand_out_the_views_own_memory(self):
        array = matrix(dtype="float32")
        (taken,) = Views([array]).take(np.arange(len(array)))
        assert not np.shares_memory(taken, array)

    def test_take_does_not_change_the_rows_it_is_given(self, views):
        rows = np.array([3, 1, 2])
        views.take(rows)
        np.testing.assert_array_equal(rows, [3, 1, 2])

    @pytest.mark.parametrize("size", [1, 2, 4, 6, 100])
    @pytest.mark.parametrize("mapped", [False, True])
    def test_blocks_are_all_rows_once_in_order(self, tmp_path, size, mapped):
        arrays = [matrix(6, 4, dtype="float16"), matrix(6, 3, seed=1, dtype="int64")]
        expected = [array.astype(np.float32) for array in arrays]
        if mapped:
            arrays = [on_disk(tmp_path / f"{a.dtype}.npy", a) for a in arrays]
        blocks = list(Views(arrays).blocks(size))
        full, rest = divmod(6, size)
        assert [len(b[0]) for b in blocks] == [size] * full + [rest] * (rest > 0)
        for i, want in enumerate(expected):
            parts = [block[i] for block in blocks]
            assert {part.dtype for part in parts} == {np.dtype(np.float32)}
            np.testing.assert_array_equal(np.concatenate(parts), want)


@pytest.fixture(params=[1 << 22, 8, 1], ids=["one block", "two rows", "one row"])
def scan(request, monkeypatch):
    """How many values are looked at together: the answer must not depend on it."""
    monkeypatch.setattr(sagl.views, "_SCAN_VALUES", request.param)


@pytest.mark.usefixtures("scan")
class TestValues:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf"), (1e39, "1e+39")],
    )
    @pytest.mark.parametrize("row", [0, 1, 4, 9])
    def test_an_unusable_value_is_named_with_its_place(self, value, shown, row):
        bad = matrix(10, 4)
        bad[row, 3] = value
        views = Views({"good": matrix(10, 4), "bad": bad})
        place = f"view 'bad' holds {shown} at row {row}, column 3;"
        with pytest.raises(ValueError, match=f"^{re.escape(place)}"):
            views.check_values()

    def test_the_first_of_several_is_named(self):
        bad = matrix(10, 4)
        bad[7, 0] = bad[5, 2] = bad[5, 3] = np.nan
        with pytest.raises(ValueError, match="at row 5, column 2;"):
            Views([bad]).check_values()

    def test_a_value_beyond_float32_is_found_in_a_memory_map(self, tmp_path):
        bad = matrix(10, 4)
        bad[8, 1] = -1e300
        views = Views({"file": on_disk(tmp_path / "x.npy", bad)})
        with pytest.raises(ValueError, match=r"'file' holds -1e\+300 at row 8"):
            views.check_values()

    @pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint8", "?"])
    def test_sound_values_pass(self, dtype):
        Views([matrix(10, 4).astype(dtype)]).check_values()

    def test_the_largest_float32_passes(self):
        array = matrix(10, 4)
        array[3, 3] = np.finfo(np.float32).max
        Views([array]).check_values()

    def test_what_cannot_change_is_looked_at_once(self, tmp_path, monkeypatch):
        """And what can is looked at each time."""
        fixed = Views({"a": on_disk(tmp_path / "a.npy", matrix())})
        writable = Views({"a": matrix()})
        scans = []
        isfinite = np.isfinite
        monkeypatch.setattr(np, "isfinite", lambda x: scans.append(1) or isfinite(x))
        writable.check_values()
        each = len(scans)
        for _ in range(2):
            writable.check_values()
        assert len(scans) == 3 * each
        for _ in range(2):
            fixed.check_values()
            Views(fixed).check_values()
        assert len(scans) == 4 * each

    @pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "?"])
    def test_a_constant_view_is_named(self, dtype):
        constant = np.tile(np.array([[0, 1, 2, 3]], dtype=dtype), (10, 1))
        views = Views({"good": matrix(10, 4), "flat": constant})
        with pytest.raises(ValueError, match=r"^view 'flat' is constant: all 10 rows"):
            views.check_spread()

    @pytest.mark.parametrize("row", [0, 1, 5, 9])
    def test_one_row_that_differs_is_enough(self, row):
        array = np.ones((10, 4))
        array[row, 2] = 1.5
        Views([array]).check_spread()

    def test_a_view_that_is_constant_in_float32_is_refused(self):
        array = 1 + 1e-12 * matrix(10, 4)
        assert np.ptp(array.astype(np.float32)) == 0
        with pytest.raises(ValueError, match="constant"):
            Views([array]).check_spread()


X = matrix(5, 6)

REFUSED = {
    "rows differ": (
        {"a": matrix(5, 2), "b": matrix(4, 2), "c": matrix(5, 3)},
        None,
        "different numbers of rows: a has 5, b has 4, c has 5; row i of every view",
    ),
    "no columns": ({"a": X, "b": X[:, :0]}, None, "view 'b' has no columns"),
    "no rows": ({"a": X[:0]}, None, "view 'a' has no rows (shape (0, 6))"),
    "1-D": ({"a": X[0]}, None, "view 'a' has shape (6,); expected samples x features"),
    "3-D": ({"a": X[None]}, None, "view 'a' has shape (1, 5, 6); expected"),
    "one 1-D array": (X[0], None, "has shape (6,)"),
    "one 3-D array": (X[None], None, "has shape (1, 5, 6)"),
    "a number": (3.0, None, "has shape ()"),
    "objects": ({"a": X.astype(object)}, None, "view 'a' holds object"),
    "strings": ({"a": X.astype(str)}, None, "view 'a' holds <U"),
    "complex": ({"a": X.astype(complex)}, None, "view 'a' holds complex128"),
    "dates": ({"a": X.astype("M8[s]")}, None, "view 'a' holds datetime64"),
    "sparse": ({"a": csr_matrix(X)}, None, "view 'a' is a sparse matrix"),
    "one sparse": (csr_matrix(X), None, "sparse matrix; pass a dense array"),
    "sparse in a list": ([X, csr_matrix(X)], None, "view 'view1' is a sparse matrix"),
    "no views": ({}, None, "no views given"),
    "empty list": ([], None, "no views given"),
    "empty tuple": ((), None, "no views given"),
    "empty name": ({"": X}, None, "a view's name must be a non-empty string, got ''"),
    "numbered name": ({0: X}, None, "must be a non-empty string, got 0"),
    "None as a name": ({None: X}, None, "must be a non-empty string, got None"),
    "sizes too small": (
        X,
        [2, 3],
        "add up to the 6 columns",
    ),
    "sizes too large": (X, [4, 3], "add up to the 6 columns"),
    "a size of zero": (X, [6, 0], "view_sizes [6, 0] must be whole positive numbers"),
    "a negative size": (
        X,
        [8, -2],
        "[8, -2] must be whole positive numbers",
    ),
    "no sizes": (X, [], "view_sizes [] must be whole positive numbers"),
    "sizes for a mapping": ({"a": X}, [6], "the input has 1 separate views already"),
    "sizes for a list": ([X, X], [6, 6], "the input has 2 separate views already"),
    "sizes for views": (Views([X]), [6], "the input has 1 separate views already"),
}


@pytest.mark.parametrize(("views", "sizes", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_line(views, sizes, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Views(views, view_sizes=sizes)
    assert "\n" not in str(caught.value)


UNCLEAR = {
    "sparse tensor": ({"a": torch.eye(3).to_sparse()}, None, "'a'"),
    "DOK matrix": (dok_matrix(X), None, "sparse matrix"),
    "2-D beside 1-D": ([X, X[:, 0]], None, "view1"),
    "sizes as one number": (X, 6, "view_sizes"),
    "broken sizes": (X, [2.5, 4.5], "view_sizes"),
}


@pytest.mark.parametrize(("views", "sizes", "names"), UNCLEAR.values(), ids=UNCLEAR)
def test_less_common_bad_input_is_refused_by_name(views, sizes, names):
    with pytest.raises(ValueError, match=names):
        Views(views, view_sizes=sizes)


def test_bfloat16_tensors_become_float32():
    tensor = torch.tensor([[1.5, 2.0], [3.0, -0.25]], dtype=torch.bfloat16)
    array = Views({"a": tensor})["a"]
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, [[1.5, 2.0], [3.0, -0.25]])


class TestDataFrames:
    """Rows of DataFrames are joined by their index, never by position."""

    @pytest.fixture
    def frame(self):
        return pd.DataFrame({"x": [1.0, 2, 3], "y": [4.0, 5, 6]}, index=list("abc"))

    def test_another_order_is_that_of_the_first(self, frame):
        views = Views({"one": frame, "two": frame.loc[list("cab")] * 10})
        np.testing.assert_array_equal(views["two"], views["one"] * 10)
        np.testing.assert_array_equal(views["one"][:, 0], [1, 2, 3])

    def test_so_it_is_in_a_list(self, frame):
        views = Views([frame, frame.iloc[::-1]])
        np.testing.assert_array_equal(views["view0"], views["view1"])

    def test_an_index_with_repeats_may_be_the_same(self, frame):
        frame.index = ["a", "a", "b"]
        np.testing.assert_array_equal(
            Views([frame, frame + 1])["view1"], frame.to_numpy() + 1
        )

    @pytest.mark.parametrize(
        ("index", "label"),
        [
            (["a", "b", "d"], "'c' is not in both"),
            ([0, 1, 2], "is not in both"),
            (["a", "c", "c"], "'c' is repeated"),
        ],
    )
    def test_other_rows_are_refused_in_one_line(self, frame, index, label):
        other = frame.set_axis(index, axis=0)
        for pair in ([frame, other], [other, frame]):
            with pytest.raises(ValueError, match=label) as caught:
                Views(dict(zip(("one", "two"), pair, strict=True)))
            assert "views 'one' and 'two'" in str(caught.value)
            assert "reset_index" in str(caught.value)
            assert "\n" not in str(caught.value)

    def test_arrays_beside_them_are_taken_as_they_are(self, frame):
        array = np.arange(6.0).reshape(3, 2)
        np.testing.assert_array_equal(Views([frame, array])["view1"], array)


@pytest.mark.parametrize(
    "samples",
    [
        ["hello world"] * 100,
        np.array(["hello world"] * 3),
        pd.Series(["hello", "world"]),
        "photos",
        Path("photos"),
        [Image.new("RGB", (2, 2))],
    ],
    ids=["texts", "array", "series", "folder", "path", "pictures"],
)
@pytest.mark.parametrize("take", [Views, SAGL(2).fit], ids=["Views", "fit"])
def test_samples_are_refused_with_the_way_to_features(samples, take):
    with pytest.raises(ValueError, match="backbones") as caught:
        take(samples)
    message = str(caught.value)
    assert "sagl fit SOURCE --backbone" in message
    assert "\n" not in message
    assert len(message) < 250
