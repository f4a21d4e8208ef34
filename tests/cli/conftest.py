"""A command line that runs in this process."""

import sys

import pytest

from sagl.cli.main import run


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
