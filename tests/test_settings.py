"""From parameters and recipes to settings, and every value that is refused."""

import dataclasses
import math
import re

import numpy as np
import pytest

from sagl import SAGL
from sagl.recipes import RECIPES, Recipe, get_recipe
from sagl.search.config import SearchConfig
from sagl.settings import Settings, resolve


def settings_of(n_samples=1000, seed=0, n_clusters=3, **params):
    """What an estimator with these parameters would train with."""
    return resolve(SAGL(n_clusters, **params).get_params(), n_samples, seed)


LENGTHS = ("epochs", "steps")

# The sources fix these two (METHOD.md); the default is a matter of measurement.
SOURCES = {
    "paper": {
        "gate": "shrink",
        "gate_input": "z",
        "pseudo_label": "log",
        "alignment": "symmetric",
        "diversity_count": "views",
        "normalize": "none",
        "epochs": 600,
    },
    "released": {
        "gate": "shrink",
        "gate_input": "features",
        "pseudo_label": "linear",
        "alignment": "one-way",
        "diversity_count": "pairs",
        "normalize": "none",
        "epochs": 600,
    },
}


class TestRecipes:
    def test_these_are_all(self):
        assert set(RECIPES) == {"default", "network", "paper", "released"}

    @pytest.mark.parametrize("recipe", SOURCES)
    def test_what_the_sources_say(self, recipe):
        values = dataclasses.asdict(get_recipe(recipe))
        assert values == values | SOURCES[recipe]

    @pytest.mark.parametrize("recipe", RECIPES)
    def test_its_values_reach_the_settings(self, recipe):
        values = dataclasses.asdict(get_recipe(recipe))
        settings = settings_of(recipe=recipe).as_dict()
        for name in values.keys() - {*LENGTHS, "least_batch"}:
            assert settings[name] == values[name]

    @pytest.mark.parametrize(
        ("lengths", "steps"), [((None, 123), 123), ((40, None), 400)]
    )
    def test_a_recipe_may_differ_in_everything(self, monkeypatch, lengths, steps):
        odd = Recipe(
            *(3.5, 0.125, 0.25, 0.375),
            *("sharpen", "features", "log", "one-way", "pairs", "none", False, False),
            *(100, *lengths),
        )
        monkeypatch.setitem(RECIPES, "odd", odd)
        settings = settings_of(1000, batch_size=100, recipe="odd").as_dict()
        values = dataclasses.asdict(odd) | {"steps": steps}
        del values["epochs"], values["least_batch"]
        assert settings == settings | values

    @pytest.mark.parametrize("recipe", RECIPES)
    def test_its_length_is_given_one_way(self, recipe):
        values = get_recipe(recipe)
        assert [values.epochs, values.steps].count(None) == 1
        # 1000 samples in batches of 100 make ten steps per epoch.
        steps = values.steps or 10 * values.epochs
        assert settings_of(1000, recipe=recipe).steps == steps

    @pytest.mark.parametrize("recipe", RECIPES)
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("gamma", 7.5),
            ("gamma", 0),
            ("beta", 0.25),
            ("beta", 0.0),
            ("learning_rate", 0.02),
            ("dropout", 0.4),
            ("dropout", 0),
            ("gate", "sharpen"),
            ("gate", "none"),
            ("gate_input", "features"),
            ("gate_input", "z"),
            ("pseudo_label", "log"),
            ("pseudo_label", "linear"),
            ("alignment", "one-way"),
            ("alignment", "symmetric"),
            ("normalize", "none"),
            ("normalize", "center"),
            ("normalize", "standard"),
            ("steps", 17),
        ],
    )
    def test_a_parameter_beats_the_recipe_and_moves_nothing_else(
        self, recipe, name, value
    ):
        with_recipe = settings_of(recipe=recipe).as_dict()
        given = settings_of(recipe=recipe, **{name: value}).as_dict()
        assert given == with_recipe | {name: value}

    def test_the_default_without_a_search_is_the_network(self):
        assert settings_of(refine=False) == settings_of(recipe="network")

    def test_with_a_search_z_has_a_width_of_its_own(self):
        settings = settings_of(recipe="paper", refine=True)
        assert (settings.width, settings.n_anchors) == (64, 1000)
        assert settings_of(recipe="paper").width is None
        assert settings_of(recipe="paper", width="C").width is None
        assert settings_of(width="C", n_clusters=7).width == 7


class TestRules:
    @pytest.mark.parametrize(
        ("n_clusters", "n_samples", "size"),
        [
            (2, 1000, 100),
            (10, 1000, 100),
            (17, 1000, 102),
            (37, 1000, 222),
            (37, 200, 200),
            (3, 60, 60),
        ],
    )
    def test_auto_batch_is_six_per_cluster_and_at_least_100(
        self, n_clusters, n_samples, size
    ):
        settings = settings_of(n_samples, n_clusters=n_clusters, recipe="network")
        assert settings.batch_size == size

    def test_auto_batch_of_a_learned_graph_is_at_least_600(self):
        assert settings_of(5000).batch_size == 600
        assert settings_of(5000, n_clusters=102).batch_size == 612

    @pytest.mark.parametrize(("given", "size"), [(2, 2), (77, 77), (5000, 1000)])
    def test_a_given_batch_is_at_most_all_samples(self, given, size):
        assert settings_of(1000, batch_size=given).batch_size == size

    @pytest.mark.parametrize(
        ("n_samples", "batch_size", "epochs", "steps"),
        [(1000, 100, 7, 70), (1001, 100, 7, 77), (999, 100, 1, 10), (60, 100, 7, 7)],
    )
    def test_epochs_count_as_steps(self, n_samples, batch_size, epochs, steps):
        settings = settings_of(n_samples, batch_size=batch_size, epochs=epochs)
        assert settings.steps == steps

    def test_given_steps_replace_the_epochs_of_a_recipe(self):
        assert settings_of(recipe="paper", steps=3).steps == 3

    def test_given_epochs_replace_the_steps_of_a_recipe(self):
        assert get_recipe("default").steps is not None
        assert settings_of(1000, recipe="default", epochs=3).steps == 6

    @pytest.mark.parametrize(
        ("n_samples", "batch_size", "anchors"),
        [(1000, 100, 1000), (9000, 100, 2000), (9000, 500, 2500), (2400, 500, 2400)],
    )
    def test_auto_anchors_are_five_batches_and_at_least_2000(
        self, n_samples, batch_size, anchors
    ):
        settings = settings_of(n_samples, batch_size=batch_size, recipe="network")
        assert settings.n_anchors == anchors

    def test_auto_anchors_of_a_search_are_its_samples(self):
        assert settings_of(9000).n_anchors == 5000
        assert settings_of(9000, n_clusters=300).n_anchors == 6000

    @pytest.mark.parametrize(("given", "anchors"), [(1, 1), (40, 40), (5000, 1000)])
    def test_given_anchors_are_at_most_all_samples(self, given, anchors):
        assert settings_of(1000, n_anchors=given).n_anchors == anchors

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("alpha", 1.0),
            ("alpha", 2.0),
            ("graph", "dense"),
            ("graph", "identity"),
            ("self_loops", False),
            ("cluster_sizes", "auto"),
            ("cluster_sizes", "balanced"),
            ("cluster_sizes", "any"),
            ("tolerance", 0.0),
            ("tolerance", 0.25),
            ("patience", 1),
        ],
    )
    def test_other_parameters_arrive_as_given(self, name, value):
        assert getattr(settings_of(**{name: value}), name) == value

    def test_the_seed_is_kept(self):
        assert settings_of(seed=123).seed == 123

    def test_as_many_clusters_as_samples_are_allowed(self):
        assert settings_of(4, n_clusters=4).n_clusters == 4

    def test_numpy_numbers_become_plain_ones(self):
        settings = settings_of(
            n_clusters=np.int64(3),
            gamma=np.float32(2.5),
            batch_size=np.int32(50),
            steps=np.uint8(9),
        )
        for name, value in (("n_clusters", 3), ("batch_size", 50), ("steps", 9)):
            assert getattr(settings, name) == value
            assert type(getattr(settings, name)) is int
        assert settings.gamma == 2.5
        assert type(settings.gamma) is float

    def test_as_dict_holds_every_field(self):
        settings = settings_of()
        fields = {field.name for field in dataclasses.fields(Settings)}
        assert settings.as_dict().keys() == fields
        saved = settings.as_dict()
        search = SearchConfig.of(saved.pop("search"))
        assert Settings(**saved, search=search) == settings

    def test_resolving_leaves_the_parameters_alone(self):
        params = SAGL(3, gamma=2.0).get_params()
        before = dict(params)
        resolve(params, 100, 0)
        assert params == before


NOT_WHOLE = [2.5, 2.0, True, "3", None, math.nan, [3]]
NOT_NUMBERS = ["many", [1.0], {}]

REFUSED = [
    *(("n_clusters", value) for value in (1, 0, -3, *NOT_WHOLE)),
    *(("batch_size", value) for value in (1, 0, -5, "big", *NOT_WHOLE)),
    *(("n_anchors", value) for value in (0, -1, "all", *NOT_WHOLE)),
    *(("patience", value) for value in (0, -1, *NOT_WHOLE)),
    *(("steps", value) for value in (0, -1, 2.5, True, "3")),
    *(("epochs", value) for value in (0, -1, 2.5, True, "3")),
    *(
        (name, value)
        for name in ("gamma", "beta", "tolerance")
        for value in (-0.1, -math.inf, math.inf, math.nan, *NOT_NUMBERS)
    ),
    *(
        ("learning_rate", value)
        for value in (0, 0.0, -1e-3, math.inf, math.nan, *NOT_NUMBERS)
    ),
    *(("dropout", value) for value in (1.0, 1, 1.5, -0.1, math.nan, *NOT_NUMBERS)),
    *(
        ("alpha", value)
        for value in (0.5, 0.999, -1, math.inf, math.nan, None, *NOT_NUMBERS)
    ),
    *(
        (name, value)
        for name in ("graph", "gate", "gate_input", "pseudo_label")
        for value in ("nonsense", "", "None", 1, ["none"])
    ),
    *(("alignment", value) for value in ("both", 0)),
    *(("normalize", value) for value in ("l2", True)),
    *(("cluster_sizes", value) for value in ("equal", "Free", None, 3, ["balanced"])),
    ("graph", None),
    ("gate", "Shrink"),
    *(("recipe", value) for value in ("ours", "", None, 1)),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=str)
def test_a_bad_value_is_refused_with_its_name_and_value(name, value):
    message = rf"^{name} must be .*got {re.escape(repr(value))}$"
    with pytest.raises(ValueError, match=message):
        settings_of(**{name: value})


@pytest.mark.parametrize("name", ["graph", "gate", "gate_input", "pseudo_label"])
def test_a_bad_choice_is_answered_with_the_good_ones(name):
    good = {
        "graph": "'sparse', 'dense', 'identity'",
        "gate": "'none', 'shrink', 'sharpen'",
        "gate_input": "'z', 'features'",
        "pseudo_label": "'log', 'linear'",
    }
    with pytest.raises(ValueError, match=f"one of {good[name]}; got 'x'"):
        settings_of(**{name: "x"})


def test_an_unknown_recipe_is_answered_with_the_known():
    with pytest.raises(
        ValueError, match="one of default, network, paper, released; got 'x'"
    ):
        get_recipe("x")


def test_epochs_and_steps_together_are_refused():
    with pytest.raises(ValueError, match=r"not both \(epochs=2, steps=30\)"):
        settings_of(epochs=2, steps=30)


def test_one_sample_is_refused():
    with pytest.raises(ValueError, match="n_samples=1 is too few"):
        settings_of(1)


def test_more_clusters_than_samples_are_refused():
    with pytest.raises(ValueError, match="n_samples=4 is fewer than n_clusters=5"):
        settings_of(4, n_clusters=5)


@pytest.mark.parametrize("name", ["gamma", "n_clusters", "graph"])
def test_the_estimator_checks_when_it_fits_not_before(name):
    """__init__ only stores: a bad value is refused by fit, before any training."""
    model = SAGL(**{"n_clusters": 3, name: "nonsense"})
    with pytest.raises(ValueError, match=f"^{name} must be .*got 'nonsense'"):
        model.fit([np.eye(6)])


@pytest.mark.parametrize(
    ("name", "value"),
    [("recipe", ["paper"]), ("gamma", "3"), ("self_loops", "no")],
)
def test_a_value_of_another_type_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        settings_of(**{name: value})


@pytest.mark.parametrize("name", ["gamma", "beta", "learning_rate", "alpha"])
def test_the_error_for_infinity_says_that_it_must_be_finite(name):
    with pytest.raises(ValueError, match=name) as caught:
        settings_of(**{name: math.inf})
    assert "finite" in str(caught.value)
