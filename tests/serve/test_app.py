"""Answers are those of ``predict``, bit by bit, and say what is asked for."""

import json
import re
import warnings

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from sagl import SAGL, __version__
from sagl.search.stability import doubt_curve
from sagl.serve.app import create_app
from sagl.serve.backbones import load_backbones
from sagl.serve.limits import Limits
from sagl.serve.schemas import NOT_BLANK
from tests.conftest import clustered_views
from tests.serve.conftest import backbones_of, picture, sent, some, words

FULL = {"probabilities": True, "neighbours": 7}


def answer(client, views, **asked):
    response = client.post("/predict", json=sent(views), params=asked)
    assert response.status_code == 200, response.text
    return response.json()


def test_answers_are_those_of_predict(client, model, new):
    given = answer(client, new, **FULL)
    labels, confidence = model.predict_with_confidence(new)
    assert given["labels"] == labels.tolist() == model.predict(new).tolist()
    assert given["confidence"] == confidence.tolist()  # the same bits
    assert given["probabilities"] == model.predict_proba(new).tolist()
    assert given["names"] == [model.names_.get(k) for k in labels.tolist()]
    assert {"cats", None} <= set(given["names"])
    expected = [[one._asdict() for one in row] for row in model.neighbours(new, 7)]
    assert given["neighbours"] == expected


def test_only_what_is_asked_for_is_sent(client, new):
    assert set(answer(client, new[:2])) == {"labels", "names", "confidence"}


@given(rows=st.lists(st.integers(0, 299), min_size=1, max_size=40))
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
def test_the_same_bits_in_any_batch(model, new, rows):
    everything = model.predict_proba(new)
    with TestClient(create_app(model)) as client:
        given = answer(client, some(new, rows), probabilities=True)
    assert given["probabilities"] == everything[rows].tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_tensors_are_taken_as_predict_takes_them(client, model, new, dtype):
    arrays = {name: (array * 9).astype(dtype) for name, array in new.items()}
    if dtype == "int64":  # which float32 rounds
        arrays["wide"][0, 0] = 2**53 + 2**29 + 1
    body = {"content": save(arrays), "headers": {"content-type": OCTETS}}
    given = client.post("/predict/tensors", **body, params={"probabilities": True})
    assert given.json()["probabilities"] == model.predict_proba(arrays).tolist()


OCTETS = "application/octet-stream"


@pytest.mark.filterwarnings("error")
def test_doubtful_samples_have_no_cluster(client, model, new, monkeypatch):
    confidence = model.predict_with_confidence(new)[1]
    curve = doubt_curve(confidence, confidence)
    monkeypatch.setattr(model, "doubt_", curve)
    wanted = (min(curve.agreement) + max(curve.agreement)) / 2
    given = answer(client, new, agreement=wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which a service does not say again and again
        nobody = model.predict(new, agreement=1).tolist()
    assert answer(client, new, agreement=1)["labels"] == nobody
    expected = model.predict(new, agreement=wanted).tolist()
    assert given["labels"] == expected
    assert -1 in expected
    assert all(
        name is None
        for name, k in zip(given["names"], expected, strict=True)
        if k == -1
    )


def test_a_run_without_stability_knows_no_agreement(new):
    views, _ = clustered_views()
    plain = SAGL(4, steps=20, random_state=0, refine=False).fit(views)
    with TestClient(create_app(plain)) as client:
        assert answer(client, new)["labels"] == plain.predict(new).tolist()
        near = answer(client, new[:3], neighbours=4)["neighbours"]
        assert near == [
            [one._asdict() for one in row] for row in plain.neighbours(new[:3], 4)
        ]
        refused = client.post("/predict", json=sent(new), params={"agreement": 0.9})
    assert refused.status_code == 422
    assert "nothing is known about the stability" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (lambda v: v.pop("wide"), 422, "'wide' is missing"),
        (lambda v: v.update(other=[[1.0]] * 3), 422, "'other' is not known"),
        (lambda v: v["wide"].pop(), 422, "different numbers of rows: wide has 2"),
        (lambda v: v["wide"][1].pop(), 422, "'wide': row 1 has 11 numbers, not 12"),
        (lambda v: v["wide"][0].append(1.0), 422, "'wide': row 0 has 13 numbers, not"),
        (lambda v: [r.pop() for r in v["wide"]], 422, "'wide' has 11 columns"),
        (lambda v: v["wide"][1].__setitem__(3, "x"), 422, "row 1, column 3: .*'x'"),
        (lambda v: v["wide"][1].__setitem__(3, True), 422, "row 1, column 3"),
        (lambda v: v["wide"][1].__setitem__(3, None), 422, "row 1, column 3"),
        (lambda v: v["wide"][1].__setitem__(3, 1e39), 422, "1e.39 at row 1, column 3"),
        (lambda v: v["wide"][1].__setitem__(3, 10**400), 422, "wide.*row 1, column 3"),
        (lambda v: v.update(wide=[]), 422, "no rows"),
        (lambda v: v.update(wide=[[], [], []]), 422, "no columns"),
        (lambda v: v.update(wide=[[[1.0]]]), 422, "row 0, column 0"),
        (lambda v: v.update(wide="abc"), 422, "view 'wide': .*array; got"),
        (lambda v: v.clear(), 422, "no views given"),
    ],
)
def test_what_cannot_be_used_is_named(client, new, change, status, said):
    body = sent(new[:3])
    change(body["views"])
    response = client.post("/predict", json=body)
    assert response.status_code == status
    (detail,) = response.json().values()
    assert re.search(said, detail), detail
    assert "\n" not in detail
    assert len(detail) < 400


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_named(client, new, value):
    body = json.dumps(sent(new[:2])).replace(repr(float(new["wide"][1, 3])), value)
    headers = {"content-type": "application/json"}
    response = client.post("/predict", content=body, headers=headers)
    assert response.status_code == 422
    assert "'wide'" in response.json()["detail"]
    assert "row 1, column 3" in response.json()["detail"]


def test_a_sample_may_miss_a_view(client, model, new):
    arrays = {name: np.array(array[:5]) for name, array in new.items()}
    arrays["wide"][3] = np.nan
    body = sent(arrays)
    body["views"]["wide"][3] = None
    given = client.post("/predict", json=body, params=FULL).json()
    assert given["probabilities"] == model.predict_proba(arrays).tolist()
    alone = {name: rows[3:4] for name, rows in body["views"].items()}
    one = client.post("/predict", json={"views": alone}, params=FULL).json()
    assert {k: v[0] for k, v in one.items()} == {k: v[3] for k, v in given.items()}
    body["views"]["narrow"][3] = None
    response = client.post("/predict", json=body)
    assert response.status_code == 422
    assert "row 3" in response.json()["detail"]


def test_nan_is_named_by_its_place(client, new):
    arrays = {name: np.array(array[:3]) for name, array in new.items()}
    arrays["narrow"][2, 4] = np.nan
    given = client.post(
        "/predict/tensors", content=save(arrays), headers={"content-type": OCTETS}
    )
    assert given.status_code == 422
    assert "view 'narrow' holds NaN at row 2, column 4" in given.json()["detail"]


@pytest.mark.parametrize(
    "params",
    [
        {"agreement": 0},
        {"agreement": 2},
        {"agreement": "nan"},
        {"neighbours": -1},
        {"neighbours": 101},
        {"probabilities": "some"},
        {"layer": 2},
    ],
)
def test_options_that_cannot_be_are_refused(client, new, params):
    response = client.post("/predict", json=sent(new[:1]), params=params)
    assert response.status_code == 422
    assert next(iter(params)) in response.json()["detail"]


def test_rows_are_limited(model, new):
    with TestClient(create_app(model, limits=Limits(rows=5))) as client:
        assert len(answer(client, new[:5])["labels"]) == 5
        response = client.post("/predict", json=sent(new[:6]))
    assert response.status_code == 413
    assert response.json()["detail"].startswith("6 samples, at most 5")


def test_pictures(photos):
    model = SAGL.load(photos)
    loaded = load_backbones(photos, widths(model), backbones_of("image"))
    contents = [picture(i, seed=1) for i in range(12)]
    views = {
        name: np.concatenate([loaded.embed(_open(c))[name] for c in contents])
        for name in model.view_names_
    }
    with TestClient(create_app(model, backbones=loaded)) as client:
        files = [("images", (f"{i}.png", c)) for i, c in enumerate(contents)]
        given = client.post("/predict/images", files=files, params=FULL).json()
        assert given["probabilities"] == model.predict_proba(views).tolist()
        assert {n["sample"][-4:] for row in given["neighbours"] for n in row} == {
            ".png"
        }
        assert client.get("/model").json()["samples"] == "image"
        alone = client.post("/predict/images", files=files[3:4], params=FULL).json()
        assert {k: v[0] for k, v in alone.items()} == {
            k: v[3] for k, v in given.items()
        }
        assert client.post("/predict/texts", json={"texts": ["a"]}).status_code == 404

        files[5] = ("images", ("broken.png", contents[5][:40]))
        response = client.post("/predict/images", files=files)
        assert response.status_code == 422
        assert "image 5 ('broken.png')" in response.json()["detail"]
        wrong = client.post("/predict/images", files=[("photo", files[0][1])])
        assert wrong.status_code == 422
        assert "'photo'" in wrong.json()["detail"]
        field = client.post("/predict/images", data={"images": "x"}, files=files[:1])
        assert field.status_code in (400, 422)


def test_pictures_of_the_fit_get_the_answer_of_the_fit(photos):
    """They come by the same models, rounded as the store rounded them."""
    model = SAGL.load(photos)
    loaded = load_backbones(photos, widths(model), backbones_of("image"))
    with TestClient(create_app(model, backbones=loaded)) as client:
        files = [("images", (f"{i}.png", picture(i))) for i in range(60)]
        given = client.post("/predict/images", files=files).json()
    assert given["labels"] == model.labels_.tolist()
    np.testing.assert_allclose(given["confidence"], model.confidence_, atol=1e-12)


def _open(content):
    from sagl.features.images import image_from_bytes

    return image_from_bytes(content)


def widths(model):
    return dict(zip(model.view_names_, model.view_widths_, strict=True))


def test_texts(texts):
    model = SAGL.load(texts)
    loaded = load_backbones(texts, widths(model), backbones_of("text"))
    with TestClient(create_app(model, backbones=loaded)) as client:
        body = {"texts": [words(int(line) - 1) for line in model.ids_]}
        given = client.post("/predict/texts", json=body).json()
        assert given["labels"] == model.labels_.tolist()
        for bad, said in (
            ({"texts": ["a", " "]}, "text 1: the text is missing or blank"),
            ({"texts": []}, "no samples"),
            ({"texts": "abc"}, "texts: "),
            ({"texts": [1]}, "texts 0: "),
            ({"texts": ["a"], "more": 1}, "more: "),
            ({}, "texts: "),
            ([], "the body: "),
        ):
            response = client.post("/predict/texts", json=bad)
            assert response.status_code == 422
            assert said in response.json()["detail"], response.text


def test_the_model_is_described(client, model):
    facts = client.get("/model").json()
    assert facts["sagl"] == __version__
    assert facts["views"] == [
        {"name": "wide", "width": 12, "backbone": None},
        {"name": "narrow", "width": 6, "backbone": None},
    ]
    assert facts["n_clusters"] == 4
    assert sum(facts["cluster_sizes"]) == facts["n_samples"] == 240
    assert facts["names"] == {"0": "cats", "2": "dogs ∞"}
    assert facts["samples"] is None


def test_metrics_count(client, new):
    answer(client, new)
    client.post("/predict", json={})
    client.get("/no/such/path/of/many")
    text = client.get("/metrics").text
    assert 'sagl_requests_total{path="/predict",status="200"} 1.0' in text
    assert 'sagl_requests_total{path="/predict",status="422"} 1.0' in text
    assert 'sagl_requests_total{path="other",status="404"} 1.0' in text
    assert "sagl_rows_total 300.0" in text
    assert "sagl_blocks_total 2.0" in text
    assert "sagl_requests_at_work 0.0" in text
    assert re.search(r"^process_resident_memory_bytes \d", text, re.MULTILINE)


def test_openapi_says_what_is_there(client, model):
    schema = client.get("/openapi.json").json()
    paths = {"/health", "/model", "/metrics", "/predict", "/predict/tensors"}
    assert set(schema["paths"]) == paths
    predict = schema["paths"]["/predict"]["post"]
    body = predict["requestBody"]["content"]["application/json"]["schema"]
    wide = body["properties"]["views"]["properties"]["wide"]
    row, missed = wide["items"]["anyOf"]
    assert row["minItems"] == row["maxItems"] == 12
    assert missed["type"] == "null"
    assert set(predict["responses"]) == {
        *("200", "400", "413", "415", "422", "429", "503")
    }
    for place in ("/docs", "/redoc"):
        assert client.get(place).status_code == 404


def test_blank_texts_are_those_that_python_strips():
    for character in map(chr, range(0x3100)):
        assert bool(re.search(NOT_BLANK, character)) == bool(character.strip())


def test_a_run_without_stability_offers_no_agreement(model):
    plain = SAGL.__new__(SAGL)
    plain.__dict__.update({k: v for k, v in vars(model).items() if k != "doubt_"})
    with TestClient(create_app(plain)) as client:
        schema = client.get("/openapi.json").json()
    asked = schema["paths"]["/predict"]["post"]["parameters"]
    assert [each["name"] for each in asked] == ["probabilities", "neighbours"]


def test_a_fault_of_ours_is_no_traceback(model, new, monkeypatch):
    def fail(X):
        raise ValueError("secret\nplaces")

    broken = SAGL.__new__(SAGL)
    broken.__dict__.update(model.__dict__)
    monkeypatch.setattr(broken, "predict_proba", fail, raising=False)
    with TestClient(create_app(broken), raise_server_exceptions=False) as client:
        response = client.post("/predict", json=sent(new[:1]))
        assert response.status_code == 500
        assert response.json() == {"detail": "the service failed; its log says why"}
        assert client.get("/health").json() == {"status": "ready"}
