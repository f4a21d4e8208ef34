"""Log odds and evidence: fair to clusters of any size."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from sagl.search.evidence import (
    Evidence,
    evidence,
    line,
    log_odds,
    mistaken,
    recall,
)
from sagl.search.score import confusion, neighbour_information
from sagl.search.space import one_hot
from tests.search.conftest import UNEVEN, blobs, configured, space_of

checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
C = 5


def predictions(seed, n=400, n_clusters=4):
    """Numbers p that are larger inside of a cluster, and hard memberships."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(n_clusters, size=n, p=[0.6, 0.25, 0.1, 0.05])
    Y = np.eye(n_clusters)[labels]
    p = rng.normal(size=Y.shape) + rng.uniform(0.5, 2, size=n_clusters) * Y
    return torch.from_numpy(p), torch.from_numpy(Y)


def obvious(p, Y):
    """Cluster by cluster and sample by sample."""
    found = np.empty(p.shape)
    for k in range(p.shape[1]):
        groups = [p[Y[:, k] == 1, k].numpy(), p[Y[:, k] == 0, k].numpy()]
        inside, outside = (group.mean() for group in groups)
        squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
        for i in range(len(p)):
            away = float(p[i, k]) - (inside + outside) / 2
            found[i, k] = away * (inside - outside) / (squares / len(p))
    return found


class TestLogOdds:
    @pytest.mark.parametrize("seed", range(5))
    def test_are_those_of_the_obvious_loop(self, seed):
        p, Y = predictions(seed)
        found = log_odds(p, Y).numpy()
        np.testing.assert_allclose(found, obvious(p, Y), rtol=0.01)  # n or n − 1

    def test_are_zero_half_way(self):
        p = torch.tensor([2.0, 6.0, -1.0, 1.0])[:, None]
        Y = torch.tensor([1.0, 1.0, 0.0, 0.0])[:, None]
        assert float(line(p, Y).middle) == 2
        assert log_odds(p, Y).flatten().sign().tolist() == [0, 1, -1, -1]

    @pytest.mark.parametrize("share", [0.5, 0.2, 0.05])
    @pytest.mark.parametrize(
        ("inside", "outside", "deviation"), [(1, 0, 1), (3, -2, 2), (0.5, 0.2, 0.1)]
    )
    def test_are_the_log_ratio_of_two_normal_densities(
        self, share, inside, outside, deviation
    ):
        rng = np.random.default_rng(0)
        member = rng.random(50_000) < share
        means = np.where(member, inside, outside)
        x = rng.normal(means, deviation)
        squares = (x - outside) ** 2 - (x - inside) ** 2
        found = log_odds(
            torch.from_numpy(x)[:, None], torch.from_numpy(member)[:, None].double()
        )
        expected = squares / (2 * deviation**2)
        np.testing.assert_allclose(found[:, 0], expected, rtol=0.1, atol=0.1)

    @checked
    @given(st.integers(0, 99), st.floats(0.05, 20), st.floats(-50, 50))
    def test_neither_shift_nor_scale_of_predictions_matters(self, seed, scale, shift):
        p, Y = predictions(seed)
        torch.testing.assert_close(log_odds(scale * p + shift, Y), log_odds(p, Y))

    def test_of_empty_and_of_full_clusters_are_finite(self):
        p, Y = predictions(0)
        Y = torch.cat([torch.zeros_like(Y[:, :2]), torch.ones_like(Y[:, 2:])], dim=1)
        assert log_odds(p, Y).isfinite().all()


def cut_and_merged(truth):
    """The largest cluster in two, at random, and the two smallest in one."""
    labels = torch.where(truth == 4, 3, truth)
    largest = torch.nonzero(truth == 0).flatten()
    labels[largest[::2]] = 4
    return labels


class TestEvidence:
    def test_labels_at_random_tell_next_to_nothing(self, uneven):
        space, truth = uneven
        order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(0))
        known, nothing = (evidence(space, y, C) for y in (truth, truth[order]))
        assert nothing.entropy == pytest.approx(known.entropy)
        assert abs(nothing.information) < 0.05 * known.information

    def test_entropy(self, uneven):
        space, truth = uneven
        for labels in (truth, cut_and_merged(truth), torch.zeros_like(truth)):
            found = evidence(space, labels, C).entropy
            assert found == pytest.approx(entropy(torch.bincount(labels)))

    def test_the_largest_cut_and_the_smallest_merged_tell_less(self, uneven):
        space, truth = uneven
        right, wrong = (
            evidence(space, labels, C) for labels in (truth, cut_and_merged(truth))
        )
        assert right.share > wrong.share + 0.2
        assert right.value > wrong.value
        assert 0 <= wrong.share <= right.share <= 2

    @checked
    @given(st.permutations(range(C)))
    def test_names_of_clusters_do_not_matter(self, uneven, names):
        space, truth = uneven
        labels = cut_and_merged(truth)
        found = evidence(space, torch.tensor(names)[labels], C)
        assert found == pytest.approx(evidence(space, labels, C), rel=1e-4)

    def test_a_cluster_that_nobody_is_in_changes_nothing(self, uneven):
        space, truth = uneven
        found = evidence(space, truth, C + 2)
        assert found == pytest.approx(evidence(space, truth, C), rel=1e-4)

    def test_views_count_by_their_weight(self, uneven):
        space, truth = uneven
        each = [evidence(space.only(view), truth, C).information for view in (0, 1)]
        assert each[0] != pytest.approx(each[1], rel=0.01)
        found = evidence(space.weighted([3.0, 1.0]), truth, C).information
        assert found == pytest.approx(0.75 * each[0] + 0.25 * each[1])

    def test_one_cluster_has_nothing_to_tell(self, uneven):
        space, truth = uneven
        found = evidence(space, torch.zeros_like(truth), C)
        assert found.entropy == 0
        assert found.share == pytest.approx(0, abs=1e-3)
        assert found.value == pytest.approx(0, abs=1e-3)

    def test_the_same_information_is_worth_more_where_less_could_be_told(self):
        few, many = Evidence(0.9, 1.0, 0.75), Evidence(0.9, 1.5, 0.75)
        assert few.share == pytest.approx(0.9)
        assert many.share == pytest.approx(0.6)
        assert many.share < many.value < few.value == pytest.approx(0.9)

    @pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
    def test_the_power_leads_from_information_to_its_share(self, uneven, power):
        space, truth = uneven
        found = evidence(configured(space, size_power=power), truth, C)
        expected = found.information ** (1 - power) * found.share**power
        assert found.value == pytest.approx(expected)
        assert found.information != pytest.approx(found.share, rel=0.01)


class TestTrust:
    def test_without_trust_in_views_only_the_prior_speaks(self, uneven):
        """So they tell nothing, and everybody is put into the largest cluster."""
        space, truth = configured(uneven[0], trust=0.0), uneven[1]
        told = evidence(space, truth, C).information
        assert told == pytest.approx(neighbour_information(space, truth, C))
        largest = int(torch.bincount(truth).argmax())
        assert mistaken(space, truth, C)[largest].sum() == len(truth)
        assert recall(space, truth, C) == pytest.approx(1 / C)

    def test_too_much_trust_costs_more_than_it_tells(self, uneven):
        """Whom views mistake they mistake with the more conviction."""
        space, truth = uneven
        some, blind = (
            evidence(configured(space, trust=trust), truth, C).information
            for trust in (0.5, 20.0)
        )
        assert blind < some


class TestMistaken:
    def test_every_sample_is_counted_under_its_label(self, uneven):
        space, truth = uneven
        for labels in (truth, cut_and_merged(truth)):
            table = mistaken(space, labels, C)
            assert float(table.sum()) == len(truth)
            counts = torch.bincount(labels, minlength=C).float()
            torch.testing.assert_close(table.sum(dim=0), counts)

    def test_nobody_is_mistaken_for_a_cluster_that_is_empty(self, uneven):
        space, truth = uneven
        assert not mistaken(space, truth, C + 1)[C].any()

    def test_members_of_small_clusters_are_known_better_than_without(self):
        """A ridge regression as it is puts them into large clusters."""
        views, labels = blobs(UNEVEN, spread=1.0)
        space, truth = space_of(views), torch.from_numpy(labels)
        fair, unfair = (f(space, truth, C).diagonal() for f in (mistaken, confusion))
        size = one_hot(truth, C).sum(dim=0)
        smallest = int(size.argmin())
        assert fair[smallest] > 0.9 * size[smallest]
        assert unfair[smallest] < 0.5 * size[smallest]
