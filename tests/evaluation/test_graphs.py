"""Measures of a sparse graph, beside slow and obvious versions of them."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from sagl.evaluation import clustering_accuracy
from sagl.evaluation import graphs as module
from sagl.evaluation.graphs import (
    asymmetry,
    components,
    components_per_class,
    edges_inside,
    entries,
    graph_measures,
    neighbour_counts,
    propagation_accuracy,
    row_weight_inside,
    sparsity_ratio,
    spectral_accuracy,
    weight_inside,
)


def some_graph(n=50, density=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return csr_array(rng.random((n, n)) * (rng.random((n, n)) < density))


def some_labels(n=50, n_classes=4):
    return np.random.default_rng(1).integers(0, n_classes, n)


def edge_cases():
    """Graphs and labels that measures may stumble over."""
    full = some_graph().toarray()
    full[np.arange(50), np.arange(50)] = np.linspace(0, 3, 50)
    full[[0, 7]] = 0  # empty rows, at the start and elsewhere
    full[:, 7] = 0  # a sample without any link
    full[9] = 0
    full[9, 9] = 1  # a row with the diagonal alone
    stored_zeros = csr_array(full)
    stored_zeros.data[::5] = 0
    one_way = np.triu(full, 1)
    return {
        "some": (csr_array(full), some_labels()),
        "names": (csr_array(full), np.array(list("abcd"))[some_labels()]),
        "single precision": (csr_matrix(full, dtype=np.float32), some_labels()),
        "stored zeros": (stored_zeros, some_labels()),
        "one way": (csr_array(one_way), some_labels()),
        "symmetric": (csr_array(full + full.T), some_labels()),
        "dense": (csr_array(np.random.default_rng(2).random((50, 50))), some_labels()),
        "one class": (csr_array(full), np.zeros(50, dtype=int)),
        "only diagonal": (csr_array(np.eye(50)), some_labels()),
        "empty": (csr_array((50, 50)), some_labels()),
        "a class each": (csr_array(full[:12, :12]), np.arange(12)),
        "one sample": (csr_array([[0.0]]), np.zeros(1, dtype=int)),
    }


@pytest.fixture(params=edge_cases())
def case(request):
    return edge_cases()[request.param]


def without_diagonal(graph):
    dense = graph.toarray().astype(float)
    np.fill_diagonal(dense, 0)
    return dense


def pieces(linked):
    """Connected components by walking from sample to sample."""
    open_, count = set(range(len(linked))), 0
    while open_:
        count += 1
        walk = [open_.pop()]
        while walk:
            i = walk.pop()
            near = {j for j in open_ if linked[i, j] or linked[j, i]}
            open_ -= near
            walk += near
    return count


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_entries_are_those_of_the_matrix(monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    full = some_graph().toarray()
    full[[0, 7]] = 0  # empty rows, at the start and elsewhere
    graph = csr_array(full)
    dense = np.zeros(graph.shape)
    for rows, columns, weights in entries(graph):
        assert len(weights) <= chunk
        dense[rows, columns] += weights
    np.testing.assert_array_equal(dense, graph.toarray())


def test_weight_inside_equals_the_dense_sum():
    graph = some_graph()
    labels = some_labels()
    same = labels[:, None] == labels
    dense = graph.toarray()
    expected = dense[same].sum() / dense.sum()
    assert weight_inside(graph, labels) == pytest.approx(expected)
    assert weight_inside(graph, np.zeros(50, dtype=int)) == pytest.approx(1)
    assert weight_inside(csr_array((3, 3)), [0, 1, 2]) == 0


@pytest.mark.parametrize("diagonal", [True, False])
def test_row_weight_inside_is_a_mean_over_rows_with_weight(case, diagonal):
    graph, labels = case
    dense = graph.toarray().astype(float) if diagonal else without_diagonal(graph)
    shares = [
        sum(row[j] for j in range(len(row)) if labels[j] == label) / row.sum()
        for row, label in zip(dense, labels, strict=True)
        if row.sum()
    ]
    expected = np.mean(shares) if shares else 0
    weight = row_weight_inside(graph, labels, diagonal=diagonal)
    assert weight == pytest.approx(expected, rel=1e-6)


def test_rows_count_alike_however_much_weight_they_have():
    graph = csr_array([[0, 1, 0], [0, 0, 9], [0, 0, 0]])
    assert row_weight_inside(graph, [0, 0, 1]) == 0.5
    assert weight_inside(graph, [0, 0, 1]) == 0.1


def test_edges_are_counted_not_weighed(case):
    graph, labels = case
    dense = without_diagonal(graph)
    linked = [(i, j) for i, j in np.ndindex(*dense.shape) if dense[i, j]]
    inside = sum(labels[i] == labels[j] for i, j in linked)
    expected = inside / len(linked) if linked else 0
    assert edges_inside(graph, labels) == pytest.approx(expected)
    np.testing.assert_array_equal(neighbour_counts(graph), (dense != 0).sum(axis=1))


def test_asymmetry(case):
    dense = without_diagonal(case[0])
    whole = np.linalg.norm(dense + dense.T)
    expected = np.linalg.norm(dense - dense.T) / whole if whole else 0
    assert asymmetry(case[0]) == pytest.approx(expected, abs=1e-7)


def test_asymmetry_of_what_is_known():
    cases = edge_cases()
    assert asymmetry(cases["symmetric"][0]) == 0
    assert asymmetry(cases["one way"][0]) == 1
    assert 0.5 < asymmetry(cases["some"][0]) < 1
    assert asymmetry(cases["only diagonal"][0]) == 0


def test_components(case):
    graph, labels = case
    dense = without_diagonal(graph)
    assert components(graph) == pieces(dense)
    expected = [pieces(dense[labels == k][:, labels == k]) for k in np.unique(labels)]
    assert components_per_class(graph, labels).tolist() == expected


def slow_propagation(graph, labels, known, seed):
    """The fixed point in closed form, (I − 0.9 S)⁻¹ Y, from a dense inverse."""
    dense = without_diagonal(graph)
    W = (dense + dense.T) / 2
    degree = W.sum(axis=1)
    S = np.array(
        [
            [w / np.sqrt(degree[i] * degree[j]) if w else 0 for j, w in enumerate(row)]
            for i, row in enumerate(W)
        ]
    )
    codes = np.unique(labels, return_inverse=True)[1]
    given = module._known_rows(codes, known, seed)
    Y = np.zeros((len(codes), codes.max() + 1))
    Y[given, codes[given]] = 1
    F = np.linalg.inv(np.eye(len(codes)) - 0.9 * S) @ Y
    asked = [i for i in range(len(codes)) if i not in given]
    right = [F[i].max() > 1e-12 and F[i].argmax() == codes[i] for i in asked]
    return np.mean(right) if right else 1


@pytest.mark.parametrize("seed", [0, 1])
def test_propagation_is_the_fixed_point(case, seed):
    graph, labels = case
    accuracy = propagation_accuracy(graph, labels, known=0.3, seed=seed)
    assert accuracy == pytest.approx(slow_propagation(graph, labels, 0.3, seed))


def test_propagation_needs_the_edges():
    labels = np.repeat([0, 1, 2], 20)
    blocks = csr_array((labels[:, None] == labels).astype(float))
    assert propagation_accuracy(blocks, labels) == 1
    # Nothing reaches anybody.
    assert propagation_accuracy(csr_array(np.eye(60)), labels) == 0
    # The self-loops of a graph are no evidence.
    heavy = csr_array(blocks + 1000 * np.eye(60))
    assert propagation_accuracy(heavy, labels) == 1
    assert propagation_accuracy(csr_array((3, 3)), [0, 1, 2]) == 1


def test_known_labels_are_a_share_of_each_class():
    codes = np.repeat([0, 1, 2], [100, 30, 3])
    given = module._known_rows(codes, 0.1, 0)
    assert np.bincount(codes[given]).tolist() == [10, 3, 1]
    assert len(np.unique(given)) == 14
    np.testing.assert_array_equal(given, module._known_rows(codes, 0.1, 0))
    assert set(given) != set(module._known_rows(codes, 0.1, 1))


def blocks_with_noise(n=240, n_classes=4, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % n_classes)
    chance = np.where(labels[:, None] == labels, 0.3, noise)
    return csr_array((rng.random((n, n)) < chance) * rng.random((n, n))), labels


def slow_spectral(graph, labels):
    """Leading eigenvectors of D^-½ W D^-½ and k-means on their rows."""
    from sklearn.cluster import KMeans

    dense = without_diagonal(graph)
    W = (dense + dense.T) / 2
    scale = W.sum(axis=1) ** -0.5
    count = len(np.unique(labels))
    vectors = np.linalg.eigh(W * scale[:, None] * scale)[1][:, -count:]
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    clusters = KMeans(count, n_init=20, random_state=0).fit_predict(rows)
    return clustering_accuracy(labels, clusters)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.12])
def test_spectral_accuracy_is_that_of_eigenvectors_and_k_means(noise):
    graph, labels = blocks_with_noise(noise=noise)
    accuracy = spectral_accuracy(graph, labels)
    assert accuracy == pytest.approx(slow_spectral(graph, labels), abs=0.03)
    assert accuracy > 0.9


def test_spectral_accuracy_of_a_dense_graph_is_that_of_the_sparse(monkeypatch):
    graph, labels = blocks_with_noise(noise=0.14)
    accuracy = spectral_accuracy(graph, labels)
    monkeypatch.setattr(module, "_DENSE_SHARE", 1.0)
    assert spectral_accuracy(graph, labels) == pytest.approx(accuracy, abs=0.02)


@pytest.mark.filterwarnings("error")
def test_all_measures_of_every_case(case):
    graph, labels = case
    measures = graph_measures(graph, labels, known=0.2, seed=3)
    counts = (without_diagonal(graph) != 0).sum(axis=1)
    n = len(labels)
    assert measures.neighbours == pytest.approx(counts.mean())
    assert measures.neighbours_p5 == pytest.approx(np.percentile(counts, 5))
    assert measures.neighbours_p95 == pytest.approx(np.percentile(counts, 95))
    assert measures.no_neighbour == (counts == 0).sum()
    assert measures.sparsity == pytest.approx((graph.toarray() != 0).sum() / n**2)
    assert measures.asymmetry == asymmetry(graph)
    assert measures.components == components(graph)
    assert measures.inside == row_weight_inside(graph, labels)
    off_diagonal = row_weight_inside(graph, labels, diagonal=False)
    assert measures.inside_off_diagonal == off_diagonal
    assert measures.edges_inside == edges_inside(graph, labels)
    per_class = components_per_class(graph, labels).mean()
    assert measures.components_per_class == pytest.approx(per_class)
    propagated = propagation_accuracy(graph, labels, known=0.2, seed=3)
    assert measures.propagation == propagated
    assert measures.spectral == spectral_accuracy(graph, labels)
    assert 0 < measures.spectral <= 1


def test_without_labels_nothing_is_said_of_classes(monkeypatch):
    graph, labels = edge_cases()["some"]
    measures = graph_measures(graph).as_dict()
    unknown = [name for name, value in measures.items() if value is None]
    assert unknown == [
        "inside",
        "inside_off_diagonal",
        "edges_inside",
        "components_per_class",
        "propagation",
        "spectral",
    ]
    monkeypatch.setattr(module, "_SPECTRAL_ROWS", 49)
    measures = graph_measures(graph, labels).as_dict()
    assert [name for name, value in measures.items() if value is None] == ["spectral"]


def test_measures_leave_the_graph_as_it_is():
    graph, labels = edge_cases()["stored zeros"]
    before = graph.copy()
    graph_measures(graph, labels)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(before, name))


def test_stored_zeros_are_no_links():
    graph = csr_array(([0.0, 1.0], ([0, 1], [1, 1])), shape=(2, 2))
    assert sparsity_ratio(graph) == 0.25
    assert components(graph) == 2


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="ndarray; give a SciPy sparse matrix"):
        sparsity_ratio(np.eye(3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        sparsity_ratio(csr_array((2, 3)))
    for measure in (weight_inside, row_weight_inside, propagation_accuracy):
        with pytest.raises(ValueError, match="2 labels for a graph of 3 samples"):
            measure(csr_array(np.eye(3)), [0, 1])
    for weight in (-0.5, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"a weight of {weight}; weights must"):
            graph_measures(csr_array([[0, weight], [1, 0]]))
    for known in (0, 1.5):
        with pytest.raises(ValueError, match=f"known must be above 0.*got {known}"):
            propagation_accuracy(csr_array(np.eye(3)), [0, 1, 1], known=known)
