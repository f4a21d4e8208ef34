"""The explorer as a person uses it, in Chromium, from a file."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.names import read_names
from sagl.run import run_checksum
from tests.browser.watching import (
    most_alone,
    neighbours_of,
    payload_of,
    read_csv,
)


@pytest.fixture(scope="module")
def payload(demo_run):
    return payload_of(demo_run / "report.html")


@pytest.fixture
def report(open_page, demo_run):
    return open_page(demo_run / "report.html")


def click_sample(report, payload, row):
    x, y = report.places(payload)[row]
    report.page.mouse.click(x, y)


def test_click_walk_rename_reload_export(report, payload, demo_run, tmp_path):
    page = report.page

    # Click a point: it is the sample that lies there, with its picture.
    places = report.places(payload)
    first = most_alone(places)
    page.mouse.click(*places[first])
    assert report.text("#sample-id") == payload["ids"][first]
    image = page.locator("#panel .picture img")
    assert image.get_attribute("alt") == payload["ids"][first]
    width = "image => image.decode().then(() => image.naturalWidth)"  # once it is there
    assert image.evaluate(width) == 8

    # Its neighbours in each view's graph, with their weights.
    for view, about in enumerate(payload["views"]):
        expected = neighbours_of(payload, view, first)
        shown = page.locator(f"section[data-view={about['name']}] .neighbour")
        assert shown.count() == len(expected)
        for place, (row, weight) in enumerate(expected):
            entry = shown.nth(place)
            assert entry.get_attribute("data-row") == str(row)
            assert entry.locator(".weight").inner_text() == f"{weight:.3f}"

    # Walk two neighbours, through two views, and back.
    second = neighbours_of(payload, 0, first)[0][0]
    page.locator("section[data-view=pixels] .neighbour").first.click()
    assert report.text("#sample-id") == payload["ids"][second]
    third = neighbours_of(payload, 1, second)[0][0]
    page.locator("section[data-view=strokes] .neighbour").first.click()
    assert report.text("#sample-id") == payload["ids"][third]
    page.click("#back")
    page.click("#back")
    assert report.text("#sample-id") == payload["ids"][first]
    assert page.locator("#back").is_disabled()

    # Mark it as wrong, name its cluster.
    page.click("#mark")
    assert page.locator("#mark").get_attribute("aria-pressed") == "true"
    cluster = int(payload["cluster"][first])
    name = 'sevens, "crossed" \U0001f9ec'
    page.click("#panel .chip")
    page.fill("#cluster-name", name)
    page.keyboard.press("Enter")
    assert report.text(f"#legend [data-code='{cluster}'] bdi") == name
    assert report.text(f"#cluster-{cluster} h3") == name

    # Reload: both are still there.
    page.reload()
    page.wait_for_selector("html[data-explorer]")
    assert report.text(f"#cluster-{cluster} h3") == name
    assert report.text(f"#legend [data-code='{cluster}'] bdi") == name
    assert "1 marked as wrong" in report.text("#explorer-status")

    # Export: the table is the run's, with name and mark.
    table = read_csv(report.download("#export-labels"))
    model = SAGL.load(demo_run)
    assert [int(line["row"]) for line in table] == list(range(len(model.labels_)))
    assert [int(line["cluster"]) for line in table] == model.labels_.tolist()
    assert [line["sample"] for line in table] == payload["ids"]
    np.testing.assert_allclose(
        [float(line["confidence"]) for line in table], model.confidence_, rtol=1e-6
    )
    assert {line["name"] for line in table if int(line["cluster"]) == cluster} == {name}
    assert {line["name"] for line in table if int(line["cluster"]) != cluster} == {""}
    assert [line["row"] for line in table if line["wrong"] == "1"] == [str(first)]

    # And sagl reads the names back.
    path = tmp_path / "names.json"
    path.write_text(report.download("#export-names"), encoding="utf-8")
    names = read_names(path, run_checksum(demo_run), 10, payload["ids"])
    assert dict(names.clusters) == {cluster: name}
    assert dict(names.wrong) == {first: payload["ids"][first]}
    report.check_quiet(visits=2)


def test_lasso_selects_what_is_inside(report, payload):
    page = report.page
    page.click("#lasso")
    places = report.places(payload)
    box = page.locator("#overlay").bounding_box()
    left, top = box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"]
    right, bottom = left + 0.35 * box["width"], top + 0.4 * box["height"]
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    inside = (places > [left, top]).all(axis=1) & (places < [right, bottom]).all(axis=1)
    table = read_csv(report.download("#selection-csv"))
    rows = [int(line["row"]) for line in table]
    assert 20 < len(rows) < len(places)
    wrong = set(rows) ^ set(np.flatnonzero(inside).tolist())
    # Only what lies within a pixel of the outline may be seen differently.
    edges = np.abs(places[sorted(wrong)][:, None] - [[left, top], [right, bottom]]).min(
        axis=(1, 2)
    )
    assert (edges < 1.5).all()
    assert report.text("#selection-size") == f"{len(rows)} samples"
    chosen = json.loads(report.download("#selection-json"))
    assert [sample["row"] for sample in chosen["samples"]] == rows
    page.click("#selection-wrong")
    assert f"{len(rows)} marked as wrong" in report.text("#explorer-status")
    report.check_quiet()


def test_keyboard_alone(report, payload):
    page = report.page
    page.focus("#overlay")
    page.keyboard.press("Enter")
    opened = report.text("#sample-id")
    row = payload["ids"].index(opened)
    second = neighbours_of(payload, 0, row)[1][0]
    page.keyboard.press("2")
    assert report.text("#sample-id") == payload["ids"][second]
    page.keyboard.press("m")
    assert "1 marked as wrong" in report.text("#explorer-status")
    page.keyboard.press("Backspace")
    assert report.text("#sample-id") == opened
    page.keyboard.press("Escape")
    assert page.locator("#sample-id").count() == 0
    for key in ("+", "ArrowLeft", "ArrowUp", "-", "0", "l", "l"):
        page.keyboard.press(key)
    page.keyboard.press("/")
    page.keyboard.type("DIGIT 1023")
    page.keyboard.press("Enter")
    assert report.text("#sample-id") == "digit 1023"
    # A neighbour's button opens it, and one stays in the panel.
    page.locator("section[data-view=spectrum] .neighbour").first.focus()
    page.keyboard.press("Enter")
    row = neighbours_of(payload, 2, payload["ids"].index("digit 1023"))[0][0]
    assert report.text("#sample-id") == payload["ids"][row]
    assert page.evaluate("document.activeElement.id") == "sample-id"
    # From the search, Tab leads through results and panel to the picture.
    page.focus("#search")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "digit 1023"
    report.check_quiet()


def test_search_finds_parts_of_ids(report):
    page = report.page
    page.fill("#search", "git 99")
    ids = page.locator("#found button").all_inner_texts()
    assert ids[0] == "digit 99"
    assert "digit 990" in ids
    page.locator("#found button").nth(1).click()
    assert report.text("#sample-id") == ids[1]
    page.fill("#search", "no such")
    assert "No sample" in report.text("#found")
    page.fill("#search", "digit 99")
    page.click("#found-all")
    assert report.text("#selection-size") == "11 samples"  # 99 and 990 to 999


def test_colours_and_legend(report, payload):
    page = report.page
    options = page.locator("#colour option").all_inner_texts()
    assert options[0] == "Cluster"
    numbers = ["Confidence", "Unlike all others", "Views disagree", "True label"]
    assert options[-4:] == numbers
    assert all(option.startswith("Layer of ") for option in options[1:-4])
    before = page.locator("#points").screenshot()
    page.select_option("#colour", label="True label")
    entries = page.locator("#legend .entry")
    categories = payload["columns"][0]["categories"]
    assert page.locator("#legend .entry bdi").all_inner_texts() == categories
    counts = np.bincount(payload["columns"][0]["values"])
    shown = [int(text) for text in page.locator("#legend .count").all_inner_texts()]
    assert shown == counts.tolist()
    entries.nth(3).click()
    assert entries.nth(3).get_attribute("aria-pressed") == "true"
    page.select_option("#colour", label="Confidence")
    scale = page.locator("#legend .scale").evaluate("e => e.style.background")
    assert scale.count("rgb(") == 64
    page.wait_for_timeout(100)
    assert page.locator("#points").screenshot() != before
    report.check_quiet()


def test_clusters_of_the_report_lead_into_the_explorer(report, payload):
    page = report.page
    button = page.locator("#clusters button[data-sample]").nth(5)
    row = int(button.get_attribute("data-sample"))
    button.click()
    assert report.text("#sample-id") == payload["ids"][row]
    page.locator("button[data-show-cluster='3']").click()
    assert page.evaluate("document.activeElement.id") == "cluster-name"


def test_wheel_zooms_and_drag_moves(report, payload):
    page = report.page
    places = report.places(payload)
    row = most_alone(places)
    x, y = places[row]
    page.mouse.click(x, y)
    page.mouse.wheel(0, -600)  # around the pointer: the sample stays under it
    page.keyboard.press("Escape")
    page.mouse.click(x, y)
    assert report.text("#sample-id") == payload["ids"][row]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y + 40, steps=5)
    page.mouse.up()
    page.mouse.click(x + 80, y + 40)
    assert report.text("#sample-id") == payload["ids"][row]


def test_every_sample_is_drawn_in_its_colour_where_it_lies(report, payload):
    places = report.places(payload)
    box = report.page.locator("#overlay").bounding_box()
    shown = report.page.evaluate(
        """async () => {
        await new Promise(requestAnimationFrame);
        const canvas = document.getElementById("points");
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        return [height, width, [...data]];
        }"""
    )
    pixels = np.reshape(shown[2], (*shown[:2], 4))
    across, down = (places - [box["x"], box["y"]]).round().astype(int).T
    red_green_blue = [
        [int(payload["palette"][k][i : i + 2], 16) for i in (1, 3, 5)]
        for k in payload["cluster"]
    ]
    # Dots let a little of the white ground through, and others may lie over them.
    near = np.abs(pixels[down, across, :3] - red_green_blue).max(axis=1) < 40
    assert near.mean() > 0.97
    painted = (pixels[..., :3] != 255).any(axis=2).mean()
    assert 0.01 < painted < 0.3
    report.check_quiet()


def test_without_storage_the_page_says_so(open_page, demo_run):
    report = open_page(
        demo_run / "report.html",
        before="""Object.defineProperty(window, "localStorage", {
          get() { throw new Error("refused"); },
        });""",
    )
    assert "export before you leave" in report.text("#explorer-status")
    page = report.page
    page.locator("#legend .entry").first.click()
    page.fill("#cluster-name", "kept for now")
    page.keyboard.press("Enter")
    names = json.loads(report.download("#export-names"))
    assert names["clusters"] == {"0": "kept for now"}
    report.check_quiet()


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, True)])
def test_nothing_is_wider_than_the_screen(open_page, demo_run, width, dark):
    report = open_page(
        demo_run / "report.html",
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
    )
    page = report.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    level = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (level < 60) == dark
    report.check_quiet()


def test_paper_is_white(open_page, demo_run):
    page = open_page(demo_run / "report.html", color_scheme="dark").page
    corner = """async () => {
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    const canvas = document.getElementById("points");
    return [...canvas.getContext("2d").getImageData(0, 0, 1, 1).data];
    }"""
    assert max(page.evaluate(corner)[:3]) < 60
    page.emulate_media(media="print")
    assert page.evaluate(corner) == [255] * 4


def test_everything_has_a_name(report):
    nameless = report.page.evaluate(
        """() => [
        ...[...document.querySelectorAll("img")].filter((e) => !e.alt),
        ...[...document.querySelectorAll("button, summary, a")].filter(
          (e) => !e.textContent.trim() && !e.ariaLabel && !e.querySelector("img[alt]")),
        ...[...document.querySelectorAll("input, select")].filter(
          (e) => !e.labels.length && !e.ariaLabel),
        ...[...document.querySelectorAll("figure svg")].filter((e) => !e.ariaLabel),
        ].map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
