"""A command line that runs in this process, and a run to call it on."""

import sys

import numpy as np
import pytest

from sagl import SAGL
from sagl.cli.main import run
from sagl.experiments.fit import fit_run
from tests.conftest import QUICK, clustered_views, quick_searches


@pytest.fixture(autouse=True, scope="package")
def all_quick():
    """Of the search commands have no options."""
    with quick_searches():
        yield


@pytest.fixture
def sagl_cli(monkeypatch, capsys):
    """Runs a command line in this process: exit code, stdout, stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["sagl", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            run()
        output = capsys.readouterr()
        return exit_.value.code or 0, output.out, output.err

    return call


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A run, and beside it its views and labels as files."""
    folder = tmp_path_factory.mktemp("fitted")
    views, labels = clustered_views()
    for name, array in views.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "labels.npy", labels)
    model = SAGL(4, steps=60, search=QUICK, random_state=0)
    fit_run(model, views, folder / "run")
    return folder
