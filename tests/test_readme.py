"""What the README shows is run, in order, in a directory with the files it names."""

import csv
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
    named = {row["name"] for row in rows if row["cluster"] == "3"}
    assert named in ({"cats"}, set())
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
