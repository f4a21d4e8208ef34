"""Names from texts, columns, typical samples and a user's own function."""

import numpy as np
import pytest

from sagl.clusters.naming import keywords, over_represented

WORDS = (
    "apple pear fruit",
    "engine wheel car",
    "violin opera music",
    "snow rain storm",
)


@pytest.fixture
def texts(fitted):
    rng = np.random.default_rng(0)
    return [
        " ".join(["the report of", *rng.permutation(WORDS[k].split())[:2]])
        for k in fitted.labels_
    ]


@pytest.fixture
def unnamed(fitted):
    from dataclasses import replace

    return fitted._other(replace(fitted._model, names={}))


def test_texts_give_their_own_words(unnamed, texts):
    unnamed.name_clusters(texts)
    for k in range(4):
        name = unnamed.cluster_name(k)
        assert set(name.split(", ")) == set(WORDS[k].split())


def test_names_that_are_there_stay(unnamed, texts):
    unnamed.rename({2: "mine"}).name_clusters(texts)
    assert unnamed.cluster_name(2) == "mine"
    assert "apple" in unnamed.cluster_name(0)


def test_what_is_said_everywhere_names_nothing():
    words = keywords(["report a b"] * 2 + ["report x"] * 2, np.array([0, 0, 1, 1]), 2)
    assert words == {0: ["report"], 1: ["report"]}  # a and x are no words
    words = keywords(
        ["report gulls"] * 5 + ["report crows"] * 5, np.repeat([0, 1], 5), 1
    )
    assert words == {0: ["gulls"], 1: ["crows"]}
    assert keywords(["1", "2 3"], np.array([0, 1]), 3) == {}


def test_columns_give_what_is_over_represented(unnamed):
    k = unnamed.labels_
    rng = np.random.default_rng(0)
    columns = {
        "kind": np.where(k == 1, "cat", "dog").tolist(),
        "size": (k == 3) * 2.0 + rng.normal(size=240) * 0.1,
        "noise": rng.normal(size=240),
    }
    values = over_represented(columns, k)
    assert values[1][0] == "kind: cat"
    assert values[3][0] == "size: high"
    assert not any("noise" in what for of in values.values() for what in of)
    unnamed.name_clusters(columns=columns)
    assert unnamed.cluster_name(1).startswith("kind: cat")
    assert len(set(unnamed.names_.values())) == 4


def test_without_anything_the_typical_sample_stands_for_the_cluster(unnamed):
    unnamed.name_clusters()
    for k in range(4):
        assert unnamed.cluster_name(k) == f"like {unnamed.typical(k, 1)[0]}"


def test_a_function_of_the_user_is_told_what_is_known(unnamed, texts):
    seen = []

    def name(about):
        seen.append(about)
        return "the same"

    unnamed.name_clusters(texts, names=name)
    assert unnamed.names_ == {k: f"the same {k + 1}" for k in range(4)}
    for about in seen:
        assert about.size == (unnamed.labels_ == about.number).sum()
        assert set(about.typical) <= {texts[i] for i in range(240)}
        assert set(about.words[:3]) == set(WORDS[about.number].split())


def test_a_name_that_is_no_text_is_refused(unnamed):
    with pytest.raises(ValueError, match="its name is None"):
        unnamed.name_clusters(names=lambda about: None)
    with pytest.raises(ValueError, match="texts: 2 entries for 240 samples"):
        unnamed.name_clusters(["a", "b"])
    assert unnamed.names_ == {}
