"""SAGL's parameters as they are read from its source."""

import inspect

from sagl import SAGL
from sagl.parameters import option_of, sagl_parameters

HERS = {
    *("n_clusters", "random_state", "device", "callbacks", "verbose", "view_sizes"),
    *("checkpoint_dir", "checkpoint_seconds", "search"),
}


def test_they_are_those_of_the_signature():
    signature = inspect.signature(SAGL).parameters
    parameters = sagl_parameters()
    assert set(parameters) == set(signature) - HERS
    for name, parameter in parameters.items():
        assert parameter.default == signature[name].default, name
        assert parameter.annotation == signature[name].annotation, name


def test_each_has_its_help():
    parameters = sagl_parameters()
    assert [name for name, p in parameters.items() if not p.help] == []
    assert not any("``" in parameter.help for parameter in parameters.values())
    assert "entmax" in parameters["alpha"].help
    assert parameters["gamma"].help == parameters["beta"].help  # described together


def test_values_that_are_listed_are_those_that_there_are():
    for name, parameter in sagl_parameters().items():
        for value in parameter.values:
            SAGL(3, **{name: value}).resolved(100)
    assert "paper" in sagl_parameters()["recipe"].values


def test_options_are_all_different():
    options = [option_of(name) for name in sagl_parameters()]
    assert len(set(options)) == len(options)
