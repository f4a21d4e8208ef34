"""Rows and the forms in which they are written."""

import csv

from sagl.experiments.table import (
    COLUMNS,
    Row,
    _time_to,
    cells,
    csv_table,
    markdown_table,
    record,
    shown,
)

ROWS = (
    Row("a", "A", False, 2, {"acc": 0.5, "nmi": 0.6, "ari": 0.4, "ami": 0.5},
        {"acc": 0.01, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.49, 3.0, 12.0, 300.0,
        None, 5.0, 0.9),
    Row("b", "B", False, 0, note="ValueError: no"),
    Row("c", "C", True, 1, {"acc": 0.9, "nmi": 0.9, "ari": 0.9, "ami": 0.9},
        {"acc": 0.0, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.9, 3.0, 1.0, 10.0),
)  # fmt: skip


def test_bold_is_for_the_best_without_labels():
    first, second, third = cells(ROWS)
    assert first[1] == "**0.500 ± 0.010**"
    assert third[0] == "C (with labels)"
    assert third[1] == "0.900"
    assert second[1] == ""
    assert second[-1] == "ValueError: no"
    assert first[8] == "—"  # never reached
    assert first[9] == "5"
    assert second[8] == ""


def test_markdown():
    lines = markdown_table(COLUMNS, cells(ROWS)).splitlines()
    assert len(lines) == 5
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}


def test_csv_reads_back():
    rows = list(csv.DictReader(csv_table([record(row) for row in ROWS]).splitlines()))
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert float(rows[0]["acc_mean"]) == 0.5
    assert rows[1]["acc_mean"] == ""


def test_time_to_a_mark():
    def run(*curve):
        return {"curve": list(curve)}

    slow, fast = run((1, 0.2), (9, 0.8)), run((1, 0.6), (2, 0.9))
    never = run((1, 0.1), (9, 0.2))
    assert _time_to([slow, fast, fast], 0.6) == 1
    assert _time_to([slow, slow, fast], 0.7) == 9
    assert _time_to([never, never, fast], 0.7) is None
    assert _time_to([fast], None) is None


def test_values_of_settings():
    assert [shown(v) for v in (None, 0.5, 3, "none")] == ["", "0.5", "3", "none"]
