"""The feed: standardised batches, the same bits wherever the features live."""

import numpy as np
import pytest
import torch

import sagl.training.feed
from sagl import Views
from sagl.nn import Network
from sagl.training.feed import Feed, set_standardization

CPU = torch.device("cpu")
ROWS = np.array([7, 0, 119, 7, 64, 3])


@pytest.fixture
def arrays():
    """Two views, off centre, of very different scales."""
    rng = np.random.default_rng(0)
    return {
        "large": (1000 + 300 * rng.normal(size=(120, 5))).astype(np.float16),
        "small": (0.01 * rng.normal(size=(120, 3)) - 0.02).astype(np.float32),
    }


def network_for(views, kind="center"):
    network = Network(views.widths, 3, generator=torch.Generator().manual_seed(0))
    set_standardization(network, views, kind)
    return network


def feed_of(views, kind="center", **options):
    return Feed(views, network_for(views, kind), CPU, **options)


def slow_standardize(array):
    """Centred, and of mean length 10, in plain float64."""
    h = array.astype(np.float64)
    h = h - sum(h) / len(h)
    lengths = [float(np.sqrt((row**2).sum())) for row in h]
    return h * (10 / (sum(lengths) / len(lengths)))


def same(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


@pytest.fixture(params=[8192, 50, 1], ids=["one block", "50 rows", "1 row"])
def block(request, monkeypatch):
    """How many rows are measured together: the answer must not depend on it."""
    monkeypatch.setattr(sagl.training.feed, "_BLOCK_ROWS", request.param)


class TestStandardization:
    @pytest.mark.usefixtures("block")
    def test_center_is_the_obvious_computation(self, arrays):
        batch = feed_of(Views(arrays))(np.arange(120))
        for h, array in zip(batch, arrays.values(), strict=True):
            assert h.dtype == torch.float32
            np.testing.assert_allclose(h, slow_standardize(array), atol=2e-5)

    @pytest.mark.usefixtures("block")
    def test_the_mean_is_zero_and_the_mean_norm_is_ten(self, arrays):
        for h in feed_of(Views(arrays))(np.arange(120)):
            np.testing.assert_allclose(h.double().mean(dim=0), 0, atol=1e-5)
            assert float(h.double().norm(dim=1).mean()) == pytest.approx(10, rel=1e-5)

    @pytest.mark.parametrize(("kind", "power"), [("standard", 1), ("pareto", 0.5)])
    @pytest.mark.usefixtures("block")
    def test_columns_are_divided_by_their_deviation(self, arrays, kind, power):
        arrays["large"][:, 2] = 7  # a column that says nothing
        batch = feed_of(Views(arrays), kind)(np.arange(120))
        for h, array in zip(batch, arrays.values(), strict=True):
            expected = array.astype(np.float64) - array.astype(np.float64).mean(axis=0)
            deviation = expected.std(axis=0)
            expected[:, deviation > 0] /= deviation[deviation > 0] ** power
            expected *= 10 / np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(h, expected, atol=2e-5)

    def test_none_changes_nothing(self, arrays):
        batch = feed_of(Views(arrays), "none")(np.arange(120))
        for h, array in zip(batch, arrays.values(), strict=True):
            np.testing.assert_array_equal(h, array.astype(np.float32))

    def test_other_samples_are_moved_like_those_that_were_measured(self, arrays):
        network = network_for(Views(arrays))
        half = Feed(Views(arrays)[:60], network, CPU)(np.arange(60))
        whole = Feed(Views(arrays), network, CPU)(np.arange(60))
        assert same(half, whole)

    def test_measuring_does_not_change_the_views(self, arrays):
        before = {name: array.copy() for name, array in arrays.items()}
        feed_of(Views(arrays))(ROWS)
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, before[name])

    def test_an_unknown_kind_is_refused(self, arrays):
        with pytest.raises(ValueError, match=r"normalize must be .*got 'l2'"):
            network_for(Views(arrays), "l2")


class TestFeed:
    def test_rows_come_in_the_given_order(self, arrays):
        batch = feed_of(Views(arrays), "none")(ROWS)
        for h, array in zip(batch, arrays.values(), strict=True):
            np.testing.assert_array_equal(h, array[ROWS].astype(np.float32))

    @pytest.mark.parametrize("kind", ["none", "center"])
    def test_resident_and_read_per_batch_are_the_same_bits(self, arrays, kind):
        views = Views(arrays)
        resident, on_demand = (
            feed_of(views, kind),
            feed_of(views, kind, resident_bytes=0),
        )
        assert same(resident(ROWS), on_demand(ROWS))
        assert same(resident(np.arange(120)), on_demand(np.arange(120)))

    @pytest.mark.parametrize(
        ("resident_bytes", "reads"), [(120 * 8 * 4, 0), (120 * 8 * 4 - 1, 1)]
    )
    def test_only_what_fits_is_resident(self, arrays, resident_bytes, reads):
        views, counted = Views(arrays), []
        feed = feed_of(views, resident_bytes=resident_bytes)
        take = views.take
        views.take = lambda rows: (counted.append(len(rows)), take(rows))[1]
        feed(ROWS)
        assert counted == [len(ROWS)] * reads

    @pytest.mark.parametrize("resident_bytes", [0, 1 << 20])
    def test_memory_mapped_files_give_the_same_bits(
        self, arrays, tmp_path, resident_bytes
    ):
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        files = {n: np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in arrays}
        in_memory = feed_of(Views(arrays))
        mapped = feed_of(Views(files), resident_bytes=resident_bytes)
        assert same(in_memory(ROWS), mapped(ROWS))

    @pytest.mark.usefixtures("block")
    @pytest.mark.parametrize("resident_bytes", [0, 1 << 20])
    def test_in_order_is_everything_once(self, arrays, resident_bytes):
        feed = feed_of(Views(arrays), resident_bytes=resident_bytes)
        blocks = list(feed.in_order())
        assert len(blocks) == -(-120 // sagl.training.feed._BLOCK_ROWS)
        joined = [torch.cat(parts) for parts in zip(*blocks, strict=True)]
        assert same(joined, feed(np.arange(120)))

    def test_its_length_is_the_number_of_samples(self, arrays):
        assert len(feed_of(Views(arrays))) == 120
