"""What experiments are run on, from the command line."""

import pytest

from sagl.cli.data_options import find_data
from tests.experiments.test_compare import write_split


def test_single_files():
    source = find_data(None, None, ["a=x.npy"], None, ["a=y.npy"], None)
    assert source.train.views == ("a=x.npy",)
    assert source.scored.views == ("a=y.npy",)
    alone = find_data(None, None, ["a=x.npy"], "labels.npy", None, None)
    assert alone.test is None
    assert alone.scored.labels == "labels.npy"


def test_a_directory_and_some_of_its_views(tmp_path):
    directory = write_split(tmp_path / "split")
    source = find_data(directory, "wide, narrow", None, None, None, None)
    assert source.train.names == source.scored.names == ("wide", "narrow")
    with pytest.raises(ValueError, match="not both"):
        find_data(directory, None, ["a=x.npy"], None, None, None)
    with pytest.raises(ValueError, match="nothing to compare on"):
        find_data(None, None, None, None, None, None)
