"""Files and pictures: three formats, whole or absent, safe to put on a page."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from sagl.report import picture, save
from sagl.report.figures import draw_cka, draw_cluster_sizes, draw_tsne_levels
from sagl.report.saving import words
from sagl.report.style import INK

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", STARTS)
def test_formats(tmp_path, form):
    path = tmp_path / "new" / f"sizes.{form.upper()}"
    save(draw_cluster_sizes([0, 1, 1]), path)
    assert path.read_bytes().startswith(STARTS[form])
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_other_formats_are_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "sizes.jpeg"
    with pytest.raises(ValueError, match=r"sizes.jpeg: a figure is written as .png"):
        save(draw_cluster_sizes([0, 1, 1]), path)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "sizes.png"
    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        save(draw_cluster_sizes([0, 1, 1]), path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_picture_can_be_inlined():
    names = ['<script>alert("1")</script>', "a --> b", "x"]
    made = picture(draw_cka(np.eye(3), names), "cka")
    root = ET.fromstring(made.svg)  # well formed
    assert root.get("aria-label") == made.alt
    assert "script" in made.alt  # kept as text
    assert "<script" not in made.svg.lower()
    assert "<style" not in made.svg
    assert "<!--" not in made.svg
    assert INK not in made.svg
    assert "currentColor" in made.svg
    assert made.png.startswith(STARTS["png"])
    assert made.caption.startswith("How alike the views are")


def test_ids_are_unique_on_a_page_and_links_lead_to_them():
    def ids_and_links(svg):
        root = ET.fromstring(svg)
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        links = [
            value[1:]
            for e in root.iter()
            for key, value in e.attrib.items()
            if key.endswith("href") and value.startswith("#")
        ]
        clips = [e.get("clip-path")[5:-1] for e in root.iter() if e.get("clip-path")]
        return ids, links + clips

    first = picture(draw_cluster_sizes([0, 1, 1]), "one")
    second = picture(draw_cluster_sizes([0, 1, 1]), "two")
    ids, links = ids_and_links(first.svg)
    assert links
    assert set(links) <= set(ids)
    assert len(ids) == len(set(ids))
    assert not set(ids) & set(ids_and_links(second.svg)[0])


def test_the_same_data_make_the_same_picture(tmp_path):
    def once():
        return picture(draw_cluster_sizes([0, 1, 1]), "sizes")

    assert once() == once()


def test_words_of_several_panels_come_in_order():
    xy = np.random.default_rng(0).normal(size=(20, 2))
    axes = draw_tsne_levels({"a": xy, "b": xy}, np.arange(20) % 2)
    assert words(axes[0]) == words(axes[0].figure)
    assert words(axes[1]).alt.endswith("2 clusters: a, b.")


def test_what_others_drew_has_no_words():
    figure = Figure()
    figure.subplots()
    with pytest.raises(ValueError, match="not drawn by sagl"):
        words(figure)
    with pytest.raises(ValueError, match="letters, digits and hyphens; got 'a b'"):
        picture(draw_cluster_sizes([0, 1]), "a b")


def test_rare_scripts_and_emoji_do_not_warn(tmp_path, recwarn):
    ax = draw_cluster_sizes([0, 1, 1], names=["🐈 קטן", "日本語"])
    save(ax, tmp_path / "names.png")
    assert not [w for w in recwarn if "Glyph" in str(w.message)]
