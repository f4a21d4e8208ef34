"""A small fitted run and all that can be known about it."""

from dataclasses import replace

import numpy as np
import pytest

from sagl import SAGL
from sagl.experiments.fit import fit_run
from sagl.report.inputs import Inputs
from sagl.report.run_data import collect
from tests.conftest import clustered_views


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A run on 240 samples of 4 clusters, with its graph."""
    directory = tmp_path_factory.mktemp("runs") / "small"
    views, _ = clustered_views()
    fit_run(SAGL(4, steps=300, random_state=0), views, directory)
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

    def alter(labels=None, confidence=None, **changes):
        data = replace(small_data, **changes)
        if labels is None and confidence is None:
            return data
        model = SAGL.load(data.directory)
        if labels is not None:
            model.labels_ = np.asarray(labels)
        if confidence is not None:
            model.confidence_ = np.asarray(confidence)
        return replace(data, model=model)

    return alter
