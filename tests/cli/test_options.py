"""Groups of options, declared once."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from sagl.cli.options import takes


def size(
    width: Annotated[int, typer.Option(help="In columns.")] = 3,
    height: Annotated[int, typer.Option(help="In rows.")] = 4,
) -> Any:
    return width, height


def colour(ink: Annotated[str, typer.Option("--ink", "-i")] = "black") -> str:
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
        box: Any, ink: str, what: Annotated[str, typer.Argument()], times: int = 1
    ) -> None:
        """Draw something."""
        typer.echo(f"{box} {ink} {what} {times}")

    assert run(draw, "a line").output.strip() == "(3, 7) black a line 1"
    options = ("--width", "5", "-i", "red", "--times", "2")
    assert run(draw, "dots", *options).output.strip() == "(5, 7) red dots 2"
    assert run(draw, "dots", "--width", "x").exit_code == 2
    shown = run(draw, "--help").output
    assert "Draw something." in shown
    assert "In columns." in shown


def test_an_option_of_its_own_comes_first(run):
    @takes(size)
    def draw(box: Any, width: Annotated[str, typer.Option()]) -> None:
        typer.echo(f"{box} {width}")

    assert run(draw, "--width", "wide").output.strip() == "(3, 4) wide"
    assert run(draw).exit_code == 2  # and it is required
