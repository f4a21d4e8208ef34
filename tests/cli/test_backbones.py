"""``sagl backbones``."""

import json

import pytest

from sagl.features.backbones import KNOWN


@pytest.fixture
def run(sagl_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        code, out, err = sagl_cli("backbones", *arguments)
        assert code == 0, err
        return out

    return call


def test_the_table(run):
    lines = run().splitlines()
    assert max(map(len, lines)) <= 80
    for known in KNOWN.values():
        row = next(line for line in lines if line.split()[:1] == [known.name])
        assert f" {known.dim} " in row
        assert f"{known.millions:,.0f} M" in row
        assert (" * " in row) == known.paper
        assert ("then labels" in row) == bool(known.labels)
        assert known.licence in row
    text = " ".join(" ".join(lines).split())
    assert "labels: classes that a model was taught may overlap" in text
    assert "convnextv2-l ImageNet-22k and 1k; convnextv2-t" in text
    assert "hf auth login" in text


def test_for_machines(run):
    rows = json.loads(run("--json"))
    assert [row["name"] for row in rows] == list(KNOWN)
    first = rows[0]
    assert first["backbone"] == "hf:facebook/dinov3-vitl16-pretrain-lvd1689m"
    assert first["gated"]
    assert {"kind", "millions", "dim", "objective", "licence", "labels"} <= set(first)
