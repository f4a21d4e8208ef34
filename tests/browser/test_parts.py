"""Layers, galleries, search, maps side by side and another run, in Chromium."""

import numpy as np
import pytest

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
