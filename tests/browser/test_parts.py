"""Layers, galleries, search, maps side by side and another run, in Chromium."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.corrections_file import read_corrections
from sagl.run import run_checksum
from tests.browser.conftest import rich_views
from tests.browser.watching import most_alone, neighbours_of, payload_of


@pytest.fixture(scope="module")
def payload(rich_report):
    return payload_of(rich_report)


@pytest.fixture
def report(open_page, rich_report):
    return open_page(rich_report)


def rows_of(page, selector):
    """The samples of a list, in its order."""
    return [
        int(button.get_attribute("data-row"))
        for button in page.locator(f"{selector} button[data-row]").all()
    ]


def pixels(page, canvas="points"):
    """What is to be seen there, with all that lies over it."""
    page.wait_for_timeout(100)
    return page.locator(f"#{canvas}").screenshot()


def test_layers_are_a_tree_that_colours_and_names_the_map(report, payload):
    page, layers = report.page, payload["layers"]
    buttons = page.locator("#panel .layer")
    assert buttons.count() == len(layers["sizes"])
    for i, (size, share) in enumerate(
        zip(layers["sizes"], layers["stability"], strict=True)
    ):
        text = buttons.nth(i).inner_text()
        assert f"{size} cluster" in text
        assert f"{int(100 * share + 0.5)} %" in text
        assert ("asked for" in text) == (size == 4)
    nodes = page.locator("#panel .tree .node")
    counts = [int(text) for text in page.locator(".tree .count").all_inner_texts()]
    roots = page.locator("#panel .tree > li > .node .count").all_inner_texts()
    assert sum(map(int, roots)) == 240
    assert nodes.count() >= 4
    before = pixels(page)
    buttons.first.click()
    assert buttons.first.get_attribute("aria-pressed") == "true"
    assert page.locator("#legend .entry").count() == layers["sizes"][0]
    assert page.locator("#colour option:checked").inner_text() == (
        f"Layer of {layers['sizes'][0]}"
    )
    assert pixels(page) != before
    # A node is a group: the panel tells what is in it, and that can be named.
    nodes.first.click()
    assert str(counts[0]) in report.text("#panel .quiet")
    page.locator("#panel .chip").first.click()
    assert page.locator("#panel .layer").count() == 0
    report.check_quiet()


def test_names_of_coarse_clusters_follow_those_in_them(report, payload):
    page = report.page
    page.locator("#legend [data-code='0']").click()
    page.fill("#cluster-name", "tigers")
    page.keyboard.press("Enter")
    page.click("#panel .close")
    tree = page.locator("#panel .tree").inner_text()
    assert "tigers" in tree
    assert "Cluster 0" not in tree
    # Names are unique: a second cluster of that name gets a number.
    page.locator("#legend [data-code='1']").click()
    page.fill("#cluster-name", "tigers")
    page.keyboard.press("Enter")
    assert page.input_value("#cluster-name") == "tigers 2"
    report.check_quiet()


def test_galleries_are_sorted_and_lead_to_the_map(report, payload):
    page, facts = report.page, payload["facts"]
    outlier = np.array(facts["outlier"])
    shown = rows_of(page, "#gallery")
    assert outlier[shown].tolist() == sorted(outlier, reverse=True)[: len(shown)]
    assert len(shown) == 36
    page.click("#gallery-more")
    assert len(rows_of(page, "#gallery")) > 36
    page.click("#gallery-kinds [data-kind=disagreement]")
    shown = rows_of(page, "#gallery")
    apart = np.array(facts["disagreement"])
    assert (np.diff(apart[shown]) <= 0).all()
    page.select_option("#gallery-sort", "id")
    shown = rows_of(page, "#gallery")
    assert shown == sorted(shown)
    page.select_option("#gallery-cluster", "2")
    shown = rows_of(page, "#gallery")
    assert {payload["cluster"][row] for row in shown} == {2}
    page.locator("#gallery button").first.click()
    assert report.text("#sample-id") == payload["ids"][shown[0]]
    report.check_quiet()


def test_near_duplicates_are_in_groups(report, payload):
    page = report.page
    page.click("#gallery-kinds [data-kind=duplicate]")
    groups = {}
    for row, group in enumerate(payload["facts"]["duplicate"]):
        if group >= 0:
            groups.setdefault(group, []).append(row)
    assert len(groups) == 10
    page.select_option("#gallery-sort", "id")
    boxes = page.locator("#gallery .duplicates")
    found = [
        [int(b.get_attribute("data-row")) for b in box.locator("button").all()]
        for box in boxes.all()
    ]
    assert sorted(found) == sorted(groups.values())
    assert [0, 230] in found
    page.select_option("#gallery-cluster", "1")
    inside = [rows for rows in found if payload["cluster"][rows[0]] == 1]
    words = f"{len(inside)} group" if inside else "There are none."
    assert report.text("#gallery-count").startswith(words)
    report.check_quiet()


def test_search_finds_texts_and_names(report, payload):
    page = report.page
    page.fill("#search", "a BIRD, no. 1")
    found = rows_of(page, "#found")
    assert found
    assert all("a bird, no. 1" in payload["texts"][row] for row in found)
    assert "a bird, no. 1" in report.text("#found .snippet")
    page.locator("#found button").first.click()
    assert report.text("#sample-id") == payload["ids"][found[0]]
    page.fill("#search", "about a fish")
    page.click("#found-all")
    fish = sum("about a fish" in text for text in payload["texts"])
    assert report.text("#selection-size") == f"{fish} samples"
    page.fill("#search", "cluster 3")
    page.locator("#found [data-cluster='3']").click()
    assert page.locator("#cluster-name").get_attribute("placeholder") == "Cluster 3"
    report.check_quiet()


def test_more_like_one(report, payload):
    page = report.page
    row = most_alone(report.places(payload))
    page.mouse.click(*report.places(payload)[row])
    page.click("#like-this")
    shown = rows_of(page, "#panel")
    near = {
        other
        for view in range(len(payload["views"]))
        for other, _ in neighbours_of(payload, view, row)
    }
    assert shown[0] == row
    assert near <= set(shown) or len(shown) == 60
    weight = {other: 0.0 for other in near}
    for view in range(len(payload["views"])):
        for other, one in neighbours_of(payload, view, row):
            weight[other] += one
    nearest = max(weight, key=weight.get)
    assert nearest in shown[1:4]
    assert "the most alike first" in page.locator("#panel").inner_text()
    report.check_quiet()


def test_two_maps_side_by_side_are_linked(report, payload):
    page = report.page
    options = page.locator("#map-beside option").all_inner_texts()
    assert options == ["none", "All views", "wide", "narrow"]
    assert page.locator("#overlay-beside").is_hidden()
    page.select_option("#map-beside", label="narrow")
    left = page.locator("#overlay").bounding_box()
    right = page.locator("#overlay-beside").bounding_box()
    assert right["x"] > left["x"] + left["width"]
    assert pixels(page) != pixels(page, "points-beside")
    # A sample under the pointer is ringed in the other picture.
    before = pixels(page, "overlay-beside")
    places = report.places(payload)
    page.mouse.move(*places[most_alone(places)])
    assert pixels(page, "overlay-beside") != before
    # A click in the second map opens the sample that lies there.
    narrow = payload["maps"][1]
    extent, xy = np.array(narrow["extent"]), np.reshape(narrow["xy"], (-1, 2))
    scale = 0.92 * min(right["width"] / extent[0], right["height"] / extent[1])
    right = page.locator("#overlay-beside").bounding_box()
    middle = [right["x"] + right["width"] / 2, right["y"] + right["height"] / 2]
    there = middle + (xy - extent / 2) * scale * [1, -1]
    row = most_alone(there)
    page.mouse.click(*there[row])
    assert report.text("#sample-id") == payload["ids"][row]
    page.select_option("#map", label="wide")
    assert "features of wide" in report.text("#map-words")
    page.select_option("#map-beside", label="none")
    assert page.locator("#overlay-beside").is_hidden()
    report.check_quiet()


def test_another_run_beside(report, payload):
    page = report.page
    text = page.locator("#beside").inner_text()
    assert "240 samples are in both runs; 6 of them (2.5%) moved" in text
    assert "cats" in text
    page.click("#gallery-kinds [data-kind=moved]")
    assert sorted(rows_of(page, "#gallery")) == payload["moved"]
    assert payload["moved"] == list(range(0, 240, 40))
    page.select_option("#colour", label="Cluster in later")
    assert page.locator("#legend .entry").count() == 4
    # Counterparts have one colour.
    colours = page.locator("#legend .entry circle").evaluate_all(
        "all => all.map((circle) => circle.getAttribute('fill'))"
    )
    assert sorted(colours) == sorted(payload["palette"][:4])
    report.check_quiet()


@pytest.mark.parametrize("dark", [False, True])
def test_all_of_it_fits_a_phone(open_page, rich_report, dark):
    report = open_page(
        rich_report,
        viewport={"width": 390, "height": 844},
        color_scheme="dark" if dark else "light",
    )
    page = report.page
    page.select_option("#map-beside", label="wide")
    page.click("#gallery-kinds [data-kind=duplicate]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = [page.locator(f"#overlay{n}").bounding_box() for n in ("", "-beside")]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    report.check_quiet()


def test_a_frame_of_a_notebook_works_apart(open_page, rich_report, tmp_path):
    """As ``model.report()`` shows it: no storage, no way out, but all else."""
    from sagl.report.inline import Report

    page = Report(rich_report.read_text(encoding="utf-8"), "words")
    outer = tmp_path / "notebook.html"
    outer.write_text(
        f"<!doctype html><meta charset='utf-8'><html data-explorer>{page._repr_html_()}"
    )
    watched = open_page(outer)
    frame = watched.page.frame_locator("iframe")
    frame.locator("#legend .entry").first.click()
    frame.locator("#cluster-name").fill("named here")
    frame.locator("#cluster-name").press("Enter")
    assert "export before you leave" in frame.locator("#explorer-status").inner_text()
    assert frame.locator("#cluster-0 h3 bdi").inner_text() == "named here"


def test_names_in_other_layers_are_given_and_exported(report, payload):
    page, layers = report.page, payload["layers"]
    page.locator("#panel .layer").first.click()
    code = page.locator("#legend [data-code]").first.get_attribute("data-code")
    page.locator("#legend [data-code]").first.click()
    derived = page.locator("#cluster-name").get_attribute("placeholder")
    before = pixels(page, "overlay")
    page.fill("#cluster-name", "pets")
    page.keyboard.press("Enter")
    assert report.text(f"#legend [data-code='{code}'] bdi") == "pets"
    assert pixels(page, "overlay") != before  # the map names it so
    page.click("#panel .close")
    assert "pets" in report.text("#panel .tree")
    page.reload()
    page.wait_for_selector("html[data-explorer]")
    assert "pets" in report.text("#panel .tree")
    names = json.loads(report.download("#export-names"))
    assert names["layers"] == {str(layers["sizes"][0]): {code: "pets"}}
    # Without a name of its own it is called after those in it again.
    page.locator("#panel .tree .node", has_text="pets").click()
    page.fill("#cluster-name", "")
    page.keyboard.press("Enter")
    page.click("#panel .close")
    assert "pets" not in report.text("#panel .tree")
    assert derived in report.text("#panel .tree")
    report.check_quiet(visits=2)


def test_every_kind_of_correction_is_exported_and_refitted(
    report, payload, rich_report, tmp_path
):
    """What sagl refit reads, said with the buttons of the page."""
    page, ids = report.page, payload["ids"]
    cluster = np.array(payload["cluster"])

    def open_(row):
        page.fill("#search", ids[row])
        page.keyboard.press("Enter")
        assert report.text("#sample-id") == ids[row]

    def link(one, other, how):
        open_(one)
        page.click("#link-from")
        assert "choose another sample" in report.text("#panel")
        open_(other)
        page.click(how)
        assert page.locator("#link-from").count() == 1

    alone = np.flatnonzero(np.arange(240) % 40 != 0)[10:200]
    of = [alone[cluster[alone] == k] for k in range(4)]
    link(of[0][0], of[0][1], "#other-cluster")
    link(of[1][0], of[2][0], "#same-cluster")
    open_(of[0][2])
    page.fill("#belongs-to", "Cluster 1")
    page.keyboard.press("Enter")
    open_(of[0][3])
    page.fill("#belongs-to", "strange ones")
    page.keyboard.press("Enter")
    open_(of[1][4])
    page.click("#mark")
    page.locator("#panel .chip").first.click()
    page.click("#split")
    assert page.locator("#split").get_attribute("aria-pressed") == "true"
    page.locator("#legend [data-code='2']").click()
    page.select_option("#merge-with", "3")
    assert "Cluster 2 and Cluster 3 are one" in report.text("#panel")
    page.click("#panel .close")
    said = page.locator("#panel .said li")
    assert said.count() == 6
    assert (
        f"{ids[of[1][0]]}, {ids[of[2][0]]} belong together" in said.all_inner_texts()[1]
    )
    assert "6 corrections" in report.text("#explorer-status")

    # All of it is there after a reload, and one thing is taken back.
    page.reload()
    page.wait_for_selector("html[data-explorer]")
    assert said.count() == 6
    said.nth(3).locator("button").click()
    assert said.count() == 5

    path = tmp_path / "corrections.json"
    path.write_text(report.download("#export-corrections"), encoding="utf-8")
    run = rich_report.parent / "run"
    model = SAGL.load(run)
    given = read_corrections(path, model._model, run_checksum(run))

    def mark(row):
        return {"row": int(row), "sample": ids[row]}

    assert given["labels"] == [{**mark(of[0][2]), "cluster": 1}]
    assert given["wrong"] == [mark(of[1][4])]
    assert given["must_link"] == [[mark(of[1][0]), mark(of[2][0])]]
    assert given["cannot_link"] == [[mark(of[0][0]), mark(of[0][1])]]
    assert given["merge"] == [[2, 3]]
    assert given["split"] == [1]
    corrected = model.refit(rich_views()[0], given)
    assert corrected.n_clusters_ == 4  # one less and one more
    labels = corrected.labels_
    assert labels[of[0][2]] in (1, 3)
    assert labels[of[1][0]] == labels[of[2][0]]
    assert labels[of[0][0]] != labels[of[0][1]]
    report.check_quiet(visits=2)


def test_a_selection_belongs_together_or_apart(report, payload):
    page, ids = report.page, payload["ids"]
    page.fill("#search", ids[33])
    page.keyboard.press("Enter")
    page.click("#like-this")
    size = int(report.text("#selection-size").split()[0])
    page.click("#selection-together")
    assert page.locator("#selection-apart").count() == int(size <= 20)
    page.click("#panel .close")
    assert f"{size} samples belong together" in report.text("#panel .said")
    given = json.loads(report.download("#export-corrections"))
    assert len(given["must_link"][0]) == size
    page.locator("#panel .said button").click()
    assert page.locator("#panel .said").count() == 0
    report.check_quiet()


def test_a_gallery_shows_whom_to_ask_about(report, payload):
    page = report.page
    page.locator("#gallery-kinds button", has_text="Worth asking").click()
    assert rows_of(page, "#gallery") == payload["asking"]
    assert len(payload["asking"]) == 36
    report.check_quiet()
