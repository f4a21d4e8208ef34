"""What the README shows is run, in order, in a directory with the files it names."""

import csv
import json
import re

import pytest

from tests.pages import ROOT, make_targets, run_page, write_files

README = ROOT / "README.md"


@pytest.mark.slow
def test_blocks(tmp_path, monkeypatch):
    write_files(tmp_path)
    names = run_page(README, tmp_path, monkeypatch)
    assert len(names["labels"]) == len(names["confidence"]) == 539
    assert "<html" in (tmp_path / "found" / "report.html").read_text()
    with (tmp_path / "clusters.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 100
    names = json.loads((tmp_path / "digits-run" / "names.json").read_text())
    assert "round ones" in str(names)
    assert "| k-means |" in (tmp_path / "comparison" / "table.md").read_text()


def test_it_is_short_and_links_to_what_is_there():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_two_commands_exist():
    shown = re.findall(r"^    make (\w+) ", README.read_text(), re.MULTILINE)
    assert shown[:2] == ["demo", "test"]
    assert set(shown) <= make_targets()


def test_its_figures_were_measured():
    """Each is in benchmarks/RESULTS.md, to the last digit."""
    rows = [line for line in README.read_text().splitlines() if line.startswith("| ")]
    figures = {figure for row in rows for figure in re.findall(r"\b0\.\d{3}\b", row)}
    measured = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    assert len(figures) > 10
    assert not {figure for figure in figures if figure not in measured}
