"""A small fitted run and all that can be known about it."""

from dataclasses import replace

import pytest

from sagl import SAGL
from sagl.experiments.fit import fit_run
from sagl.report.inputs import Inputs
from sagl.report.run_data import collect, describe_clusters
from tests.conftest import QUICK, clustered_views


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A run on 240 samples of 4 clusters, with its graph."""
    directory = tmp_path_factory.mktemp("runs") / "small"
    views, _ = clustered_views()
    model = SAGL(4, search=QUICK, random_state=0)
    fit_run(model, views, directory)
    return directory


@pytest.fixture(scope="session")
def small_data(small_run):
    """Everything about it, with views and labels."""
    views, labels = clustered_views()
    ids = [f"sample {row}" for row in range(len(views))]
    return collect(small_run, Inputs(ids, views, labels=labels))


@pytest.fixture
def altered(small_data):
    """The same data with other labels, confidences or anything else of RunData."""

    def alter(**changes):
        data = replace(small_data, **changes)
        clusters = describe_clusters(data.labels, data.confidence, 4, data.graph)
        return replace(data, clusters=clusters)

    return alter
