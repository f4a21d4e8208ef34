"""Groups of options, declared once."""

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sagl.cli.options import argument, option, takes


def size(width: int = option(3, "In columns."), height: int = option(4, "In rows.")):
    return width, height


def colour(ink: str = option("black", "Of the pen.", "--ink", "-i")):
    return ink


@pytest.fixture
def run():
    def call(command, *arguments):
        app = typer.Typer()
        app.command()(command)
        return CliRunner().invoke(app, arguments)

    return call


def test_a_command_gets_what_the_groups_make_of_the_options(run):
    @takes(size, colour, height=7)
    def draw(
        box: Any,
        ink: str,
        subject: str = argument(..., "What to draw.", "WHAT"),
        times: int = option(1, "How often."),
    ) -> None:
        """Draw something."""
        typer.echo(f"{box} {ink} {subject} {times}")

    assert run(draw, "a line").output.strip() == "(3, 7) black a line 1"
    options = ("--width", "5", "-i", "red", "--times", "2")
    assert run(draw, "dots", *options).output.strip() == "(5, 7) red dots 2"
    assert run(draw, "dots", "--width", "x").exit_code == 2
    assert run(draw).exit_code == 2  # what to draw must be said
    shown = run(draw, "--help").output
    assert "Draw something." in shown
    assert "In columns." in shown
    assert size.__defaults__[1].default == 4  # of others that take the group


def test_an_option_of_its_own_comes_first(run):
    @takes(size)
    def draw(box: Any, width: str = option(..., "In words.")) -> None:
        typer.echo(f"{box} {width}")

    assert run(draw, "--width", "wide").output.strip() == "(3, 4) wide"
    assert run(draw).exit_code == 2  # and it is required


def test_what_takes_groups_is_a_group(run):
    @takes(size, colour, width=6)
    def pen(box: Any, ink: str, thick: int = option(1, "In points.")) -> str:
        return f"{box} {ink} {thick}"

    @takes(pen, ink="blue")
    def draw(drawn: str, thick: str = option("very", "In words.")) -> None:
        typer.echo(f"{drawn} {thick}")

    assert run(draw, "--height", "2").output.strip() == "(6, 2) blue 1 very"
