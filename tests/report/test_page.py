"""The page: complete, whole in itself, and deaf to what names and texts say."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.names import Names
from sagl.report.beside import beside
from sagl.report.explorer import Thumbnails, make_thumbnails, shown_rows
from sagl.report.inputs import Inputs, make_column, open_inputs, with_samples
from sagl.report.page import Drawing, draw_run, render, write_report
from sagl.report.summary import Concern, concerns, headline
from sagl.run import run_checksum
from tests.conftest import clustered_views
from tests.report.pages import HOSTILE, Page, Pictures, Texts

NO_PICTURES = Thumbnails({}, False, 0)


def page_of(data, figures=(), concerns=(), thumbnails=NO_PICTURES, rows=None):
    rows = np.arange(len(data)) if rows is None else rows
    return Page(render(data, figures, concerns, thumbnails, rows))


def hostile_ids():
    return [f"{HOSTILE[row % len(HOSTILE)]} {row}" for row in range(240)]


@pytest.fixture(scope="module")
def page(small_data):
    return page_of(small_data)


def test_the_page_opens_at_what_was_found(altered, small_data):
    data = altered(labels=np.repeat([0, 1, 3], 80))
    page = page_of(data, concerns=concerns(data))
    text = " ".join(page.text)
    sentence = "240 samples in 3 clusters, seen through 2 views: wide and narrow."
    order = [
        *(sentence, "Look at this first:", "clusters are empty", "Each point is a"),
        *("Typical", "Confident samples", "No sample is in cluster 2."),
    ]
    assert order == sorted(order, key=text.index)
    # The map comes before anything else to look at, and every figure is explained.
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    parts = ["points", "panel", "cluster-0", "numbers", "warnings", "run"]
    assert parts == sorted(parts, key=ids.index)
    for number in headline(data):
        assert number.meaning in text
    assert "Look at this first" not in " ".join(page_of(small_data).text)


def test_scores_and_protocol(page, small_data):
    text = " ".join(page.text)
    assert "ACC" in text
    assert "Protocol: inductive" in text
    without = replace(small_data, inputs=replace(small_data.inputs, labels=None))
    text = " ".join(page_of(without).text)
    assert "ACC" not in text
    assert "how sure the run is and not how right" in text
    assert "Mean confidence" in text


def test_what_is_missing_is_said(altered, small_data):
    inputs = replace(small_data.inputs, views=None, notes=("The store is gone",))
    text = " ".join(page_of(altered(inputs=inputs, graphs={}, graph=None)).text)
    for note in ("The store is gone", "Without the views", "There is no graph"):
        assert note in text
        assert note not in " ".join(page_of(small_data).text)


def test_settings_and_versions(page, small_data):
    text = " ".join(page.text)
    for name, value in small_data.model.settings_.as_dict().items():
        assert name in text
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        assert shown in text
    assert "torch" in text
    assert run_checksum(small_data.directory)[:16] in text


def test_payload_is_the_run(page, small_data):
    payload = page.payload
    assert payload["run"] == run_checksum(small_data.directory)
    np.testing.assert_array_equal(payload["cluster"], small_data.labels)
    np.testing.assert_allclose(payload["confidence"], small_data.confidence, rtol=1e-6)
    assert payload["ids"] == list(small_data.inputs.ids)
    assert [view["name"] for view in payload["views"]] == ["wide", "narrow"]
    graph = small_data.graphs["narrow"].tolil()
    graph.setdiag(0)
    view = payload["views"][1]
    rows = np.reshape(view["rows"], (240, view["k"]))
    strongest = np.asarray(graph.tocsr().argmax(axis=1)).ravel()
    has_any = rows[:, 0] >= 0
    weights = graph.toarray()
    np.testing.assert_allclose(
        weights[has_any, rows[has_any, 0]], weights[has_any, strongest[has_any]]
    )
    shown = np.reshape(view["weights"], (240, view["k"]))[has_any, 0]
    np.testing.assert_allclose(shown, weights[has_any, strongest[has_any]], atol=6e-5)
    own = small_data.graphs["narrow"].diagonal()
    np.testing.assert_allclose(view["own"], own, atol=6e-5)
    column = payload["columns"][0]
    truth = [column["categories"][code] for code in column["values"]]
    assert truth == [str(label) for label in small_data.inputs.labels]


def test_every_cluster_has_its_article(page, small_data):
    articles = {a["id"] for a in page.attributes("article")}
    assert articles == {f"cluster-{c.number}" for c in small_data.clusters}
    buttons = [
        b["data-sample"] for b in page.attributes("button") if "data-sample" in b
    ]
    shown = [row for c in small_data.clusters for row in (*c.typical, *c.doubtful)]
    assert buttons == [str(row) for row in shown]


def test_the_policy_lets_only_our_script_run(page):
    [policy] = [
        meta["content"]
        for meta in page.attributes("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    scripts = [
        text
        for text, attributes in zip(
            page.scripts, page.attributes("script"), strict=True
        )
        if "type" not in attributes
    ]
    assert len(scripts) == 1
    for content, rule in (
        (scripts[0], "script-src"),
        (page.styles[0], "style-src-elem"),
    ):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, value)
    assert not re.search(r"@import|url\(", page.styles[0])


def test_our_script_sets_no_markup(page):
    script = page.scripts[-1]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
        assert word not in script
    for word in ("eval(", "new Function", "fetch(", "XMLHttpRequest", "WebSocket"):
        assert word not in script


@pytest.mark.parametrize("kind", ["ids", "image", "text"])
def test_hostile_names_are_text(altered, small_data, kind):
    ids = hostile_ids()
    inputs = replace(
        small_data.inputs,
        ids=ids,
        labels=np.array([HOSTILE[k] for k in small_data.inputs.labels]),
        names=Names({0: HOSTILE[0], 1: HOSTILE[1]}, {5: ids[5]}),
        columns=(make_column(HOSTILE[1], [HOSTILE[0], HOSTILE[2]] * 120),),
        notes=(HOSTILE[1],),
    )
    thumbnails = NO_PICTURES
    if kind == "image":
        samples = Pictures(ids)
        inputs = with_samples(inputs, samples, "x")
        thumbnails = make_thumbnails(range(240), inputs.sample)
    elif kind == "text":
        inputs = with_samples(inputs, Texts(ids, ids), "x")
    data = altered(inputs=inputs)
    figure = Drawing(HOSTILE[0], "<svg></svg>", HOSTILE[1])
    page = page_of(data, [figure], [Concern(HOSTILE[0], HOSTILE[1])], thumbnails)
    assert len(page.attributes("script")) == 2
    tags = {tag for tag, _ in page.tags}
    assert "b" not in tags
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
    assert all(image["src"].startswith("data:") for image in page.attributes("img"))
    assert HOSTILE[0] in page.text  # the cluster's name, as it is
    payload = page.payload
    assert payload["ids"] == ids
    if kind == "text":
        assert payload["texts"] == ids


def test_thumbnails_are_in_lists_and_payload(altered, small_data):
    samples = Pictures(small_data.inputs.ids, broken=7)
    data = altered(inputs=with_samples(small_data.inputs, samples, "x"))
    thumbnails = make_thumbnails(range(240), data.inputs.sample)
    page = page_of(data, thumbnails=thumbnails)
    payload = page.payload
    assert payload["thumbnails"] == {str(r): p for r, p in thumbnails.images.items()}
    assert set(range(240)) - set(thumbnails.images) == {7}
    listed = [row for c in data.clusters for row in (*c.typical, *c.doubtful)]
    images = page.attributes("img")
    assert len(images) == len([row for row in listed if row != 7])
    assert all(image["alt"] for image in images)
    assert "1 pictures could not be read." in " ".join(page.text)


def test_a_part_of_many_samples_keeps_what_is_named(altered, small_data):
    names = Names({}, {3: "sample 3", 200: "sample 200"})
    data = altered(inputs=replace(small_data.inputs, names=names))
    rows = shown_rows(data, limit=120)
    assert len(rows) == 120
    assert len(np.unique(rows)) == 120
    listed = {int(r) for c in data.clusters for r in (*c.typical, *c.doubtful)}
    assert {3, 200} | listed <= set(rows.tolist())
    payload = page_of(data, rows=rows).payload
    assert payload["row"] == rows.tolist()
    assert [payload["ids"][place] for place in payload["wrong"]] == [
        "sample 3",
        "sample 200",
    ]
    for view in payload["views"]:
        assert max(view["rows"]) < 120
    np.testing.assert_array_equal(payload["cluster"], small_data.labels[rows])


def test_layers_and_what_is_known_of_samples_are_in_the_payload(page, small_data):
    payload, model = page.payload, small_data.model
    assert payload["layers"]["sizes"] == [x.n_clusters for x in model.layers_]
    assert payload["layers"]["leaf"] == model.leaves_.labels.tolist()
    for name in ("outlier", "disagreement", "duplicate"):
        expected = getattr(model.facts_, name)
        np.testing.assert_allclose(payload["facts"][name], expected, atol=6e-5)
    old = replace(small_data, facts=None, layers=(), leaves=None)
    payload = page_of(old).payload
    assert payload["facts"] is None
    assert payload["layers"] is None


def test_another_run_is_beside_it(small_data):
    others = (small_data.labels + 1) % 4
    others[:3] = (others[:3] + 1) % 4
    others[9] = -1
    names = [HOSTILE[1], "b", "c", "d"]
    both = beside(HOSTILE[0], small_data.labels, others, 4, names, 7)
    data = replace(small_data, beside=both)
    page = page_of(data)
    text = " ".join(" ".join(page.text).split())
    assert "239 samples are in both runs; 3 of them (1.3%) moved" in text
    assert "1 are in this run alone, 7 in the other" in text
    assert not any(image["src"] == "x" for image in page.attributes("img"))
    payload = page.payload
    assert payload["moved"] == [0, 1, 2]
    column = payload["columns"][-1]
    assert column["name"] == f"Cluster in {HOSTILE[0]}"
    said = [column["categories"][code] for code in column["values"]]
    assert said[9] == "(not there)"
    for row in range(10, 240):  # counterparts in one colour
        assert column["colours"][column["values"][row]] == small_data.labels[row]


@pytest.fixture(scope="module")
def written(small_run, tmp_path_factory):
    views, labels = clustered_views()
    ids = [f"sample {row}" for row in range(240)]
    folder = tmp_path_factory.mktemp("reports")
    stages = []
    result = write_report(
        small_run,
        Inputs(ids, views, labels=labels),
        folder / "report.html",
        tsne_rows=60,
        parquet=folder / "atlas.parquet",
        map_file=folder / "map.svg",
        view_maps=True,
        progress=stages.append,
    )
    return folder, result, stages


def test_what_is_said_about_it(written):
    folder, result, stages = written
    json.dumps(result)
    assert result["bytes"] == (folder / "report.html").stat().st_size
    assert result["headline"]["ACC"] == "1.000"
    assert result["n_samples"] == 240
    assert stages[-1] == "page"
    assert {path.name for path in folder.iterdir()} == {
        *("report.html", "atlas.parquet", "map.svg"),
    }


def test_all_figures_are_there_with_words(written):
    page = Page((written[0] / "report.html").read_text(encoding="utf-8"))
    titles = " ".join(page.text)
    for title in (
        "Cluster sizes",
        "Confidence",
        "Clusters and true classes",
        "How alike the views are",
        "Loss",
        "Graph: wide",
        "Graph: narrow",
        "From features to representations: wide",
        "From features to representations: narrow",
    ):
        assert title in titles
    pictures = [a for a in page.attributes("svg") if a.get("role") == "img"]
    pictures += [a for a in page.attributes("img")]
    assert len(pictures) == 9
    assert all(len(a.get("aria-label") or a.get("alt") or "") > 20 for a in pictures)


def test_a_history_may_say_less(small_data):
    model = SAGL.load(small_data.directory)
    for history, missing in [
        ([{"step": 1, "loss": 0.5}], {"Sparsity of the graphs in training"}),
        ([{"step": s, "sparsity": [0.1, 0.2]} for s in (1, 2)], {"Loss"}),
        ([{"step": 1}], {"Loss", "Sparsity of the graphs in training"}),
        ([], {"Loss", "Sparsity of the graphs in training"}),
    ]:
        model.history_ = history
        drawn = draw_run(replace(small_data, model=model), tsne_rows=0)
        titles = {figure.title for figure in drawn}
        possible = {"Loss", "Sparsity of the graphs in training"}
        assert possible - titles == missing


def test_the_same_input_is_the_same_page(written, small_run, tmp_path):
    views, labels = clustered_views()
    ids = [f"sample {row}" for row in range(240)]
    write_report(
        small_run,
        Inputs(ids, views, labels=labels),
        tmp_path / "again.html",
        tsne_rows=60,
        view_maps=True,
    )
    first = (written[0] / "report.html").read_bytes()
    assert (tmp_path / "again.html").read_bytes() == first


def test_a_run_of_0_1_has_a_report(tmp_path):
    run = Path(__file__).parents[1] / "data" / "run-0.1"
    result = write_report(run, open_inputs(run), tmp_path / "old.html")
    assert result["n_samples"] == 220
    assert result["headline"]["Clusters in use"] == "8 of 8"
    page = Page((tmp_path / "old.html").read_text(encoding="utf-8"))
    assert page.payload["ids"][:2] == ["0", "1"]


def test_bad_places_are_refused_at_once(small_run, tmp_path):
    (tmp_path / "dir.html").mkdir()
    for path, words in [
        (tmp_path / "report.pdf", "must end in .html"),
        (tmp_path / "none" / "report.html", "no directory"),
        (tmp_path / "dir.html", "is a directory"),
    ]:
        with pytest.raises(ValueError, match=words):
            write_report(small_run, Inputs([]), path)
    for options, words in [
        ({"map_file": tmp_path / "map.txt"}, r"\.txt"),
        ({"map_file": tmp_path / "none" / "map.svg"}, "no directory"),
        ({"embedding": "pca"}, "no embedding 'pca'"),
    ]:
        with pytest.raises(ValueError, match=words):
            write_report(small_run, Inputs([]), tmp_path / "x.html", **options)
        assert not (tmp_path / "x.html").exists()
