"""``sagl serve``: a real process, asked over a real socket."""

import http.client
import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from safetensors.numpy import save

from sagl import SAGL
from sagl.cli.serve import _token
from tests.conftest import clustered_views
from tests.serve.conftest import photos, sent
from tests.serve.processes import STOPPED, serving, stopped

__all__ = ["photos"]  # a fixture


@pytest.fixture(scope="module")
def service(fitted):
    with serving(fitted / "run", "--threads", "2") as (address, process):
        yield address
        code, said = stopped(process)
    assert code == 0
    assert said == f"{STOPPED}\n"


@pytest.fixture(scope="module")
def new():
    return clustered_views(400, spread=1.5)[0]


def test_many_clients_get_the_bits_of_predict(service, fitted, new):
    model = SAGL.load(fitted / "run")
    expected = model.predict_proba(new).tolist()
    rng = np.random.default_rng(0)
    requests = [rng.integers(0, 400, size=rng.integers(1, 60)) for _ in range(80)]

    def ask(rows):
        views = {name: array[rows] for name, array in new.items()}
        with httpx.Client(base_url=service) as client:
            if len(rows) % 2:
                answer = client.post("/predict?probabilities=true", json=sent(views))
            else:
                answer = client.post(
                    "/predict/tensors?probabilities=true",
                    content=save(
                        {k: np.ascontiguousarray(v) for k, v in views.items()}
                    ),
                    headers={"content-type": "application/octet-stream"},
                )
        return answer.json()["probabilities"]

    with ThreadPoolExecutor(12) as clients:
        for rows, given in zip(requests, clients.map(ask, requests), strict=True):
            assert given == [expected[row] for row in rows]
    assert httpx.get(f"{service}/health").json() == {"status": "ready"}


def test_what_it_answers_is_what_the_command_writes(service, fitted, new, sagl_cli):
    for name, array in new.items():
        np.save(fitted / f"new-{name}.npy", array)
    files = [f"--view={name}={fitted}/new-{name}.npy" for name in new.names]
    out = fitted / "served.csv"
    assert sagl_cli("predict", fitted / "run", *files, "--out", out)[0] == 0
    answer = httpx.post(f"{service}/predict", json=sent(new)).json()
    columns = zip(answer["labels"], answer["confidence"], strict=True)
    lines = [f"{i},{k},{c!r}" for i, (k, c) in enumerate(columns)]
    assert out.read_text().splitlines()[1:] == lines


def test_model_says_what_info_says(service, fitted, sagl_cli):
    info = json.loads(sagl_cli("info", fitted / "run", "--json")[1])
    facts = httpx.get(f"{service}/model").json()
    assert [{k: v[k] for k in ("name", "width")} for v in facts.pop("views")] == info[
        "views"
    ]
    assert facts.pop("samples") is None
    assert facts == {name: info[name] for name in facts}


def raw(service, head, *chunks):
    """What comes back for bytes that no client library would send."""
    address = urlsplit(service)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    connection.connect()
    connection.sock.sendall(head)
    for chunk in chunks:
        try:
            connection.sock.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            break
    answer = http.client.HTTPResponse(connection.sock)
    try:
        answer.begin()
        return answer.status, answer.read()
    finally:
        connection.close()


HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_clients_that_leave_are_no_fault(service):
    """Nor does the log hold a line of them, as the end of the service shows."""
    address = urlsplit(service)
    for sent_before in (b"POST /pre", HEAD + b"Content-Length: 99\r\n\r\n{"):
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(sent_before)
    cut = 'sagl_requests_total{path="/predict",status="400"}'
    end = time.monotonic() + 20
    while cut not in httpx.get(f"{service}/metrics").text:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_hostile_requests(service):
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    megabyte = b"100000\r\n" + b"[" * (1 << 20) + b"\r\n"
    for status, *parts in (
        (413, chunked, *[megabyte] * 40),
        (413, HEAD + b"Content-Length: 99999999999999999\r\n\r\n"),
        (400, HEAD + b"Content-Length: -5\r\n\r\n"),
        (400, HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
        (422, HEAD + b"Content-Length: 0\r\n\r\n"),
        (422, HEAD + b"Content-Length: 9\r\n\r\n" + b"\xff" * 9),
        (422, chunked, megabyte, b"0\r\n\r\n"),
        (400, b"\x00\x01\x02\r\n\r\n"),
        (405, b"PUT /predict HTTP/1.1\r\nHost: x\r\n\r\n"),
        (415, b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"),
        (404, b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"),
        (404, b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"),
    ):
        given, body = raw(service, *parts)
        assert given == status, (parts[0][-60:], body)
        assert b"Traceback" not in body
        assert body.count(b"\n") <= 1
    assert httpx.get(f"{service}/health").status_code == 200


def test_sigterm_lets_what_is_under_way_be_finished(photos):
    """Meanwhile /health answers; and a host that others reach is warned of."""
    options = ("--vectors", "--host", "0.0.0.0", "--max-rows", "100000")
    rng = np.random.default_rng(0)
    sizes = {"colours": 12, "shapes": 36}
    large = {k: rng.random((40_000, w), dtype=np.float32) for k, w in sizes.items()}
    with serving(photos, *options) as (address, process):
        address = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx.post(f"{address}/predict/images").status_code == 404
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(post, address, large)
            at_work = "sagl_requests_at_work 1.0"
            while at_work not in httpx.get(f"{address}/metrics").text:
                assert not asked.done()
            for _ in range(3):
                assert httpx.get(f"{address}/health", timeout=5).status_code == 200
            assert not asked.done()
            code, said = stopped(process)
            answer = asked.result()
    assert answer.status_code == 200
    assert len(answer.json()["labels"]) == 40_000
    assert code == 0
    warning, line = said.splitlines()
    assert warning.startswith("sagl: warning: whoever reaches 0.0.0.0 may ask")
    assert line == STOPPED


def post(address, views):
    octets = {"content-type": "application/octet-stream"}
    url = f"{address}/predict/tensors"
    return httpx.post(url, content=save(views), headers=octets, timeout=60)


def test_pictures_a_token_and_ctrl_c(photos, tmp_path):
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    options = [f"--token-file={file}"]
    options += [
        f"--backbone={name}=tests.serve.looks:{name}#image"
        for name in ("colours", "shapes")
    ]
    with serving(photos, *options) as (address, process):
        for place in ("model", "openapi.json", "metrics", "else"):
            assert httpx.get(f"{address}/{place}").status_code == 401
        assert httpx.get(f"{address}/health").status_code == 200
        headers = {"Authorization": "Bearer s3cret"}
        with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
            schema = client.get("/openapi.json").json()
            token = schema["components"]["securitySchemes"]["token"]
            assert token == {"type": "http", "scheme": "bearer"}
            files = [
                ("images", (path.name, path.read_bytes()))
                for path in sorted((photos.parent / "photos").iterdir())
            ]
            answer = client.post("/predict/images?neighbours=3", files=files).json()
        assert answer["labels"] == SAGL.load(photos).labels_.tolist()
        assert answer["neighbours"][0][0]["sample"].endswith(".png")
        assert stopped(process, signal.SIGINT) == (130, f"{STOPPED}\n")


def test_wrong_command_lines(fitted, photos, tmp_path, sagl_cli, monkeypatch):
    run = fitted / "run"
    empty, words = tmp_path / "empty", tmp_path / "words"
    empty.write_text("\n")
    words.write_text("two words")
    for options, said in (
        ((tmp_path,), "holds no run"),
        ((run, "--max-mb", "0"), "megabytes must be above 0"),
        ((run, "--threads", "0"), "threads must be a whole number of at least 1"),
        ((run, "--host", "nowhere.invalid"), "cannot listen at nowhere.invalid"),
        ((run, "--port", "70000"), "cannot listen at 127.0.0.1, port 70000"),
        ((run, "--token-file", tmp_path / "none"), "none: the token cannot be read"),
        ((run, "--token-file", empty), "empty holds no token"),
        ((run, "--token-file", "/dev/zero"), "/dev/zero holds no token"),
        ((run, "--token-file", words), "words holds no token"),
        ((run, "--vectors", "--backbone", "wide=x:y"), "--backbone has no effect"),
        ((run, "--backbone", "other=x:y"), "no such view; the run has wide, narrow"),
        ((photos,), "looks:colours, and a file cannot have code run"),
    ):
        code, _, err = sagl_cli("serve", *options)
        assert code == 2
        assert err.startswith("sagl: error: ")
        assert err.count("\n") == 1
        assert said in err
    monkeypatch.setenv("SAGL_TOKEN", "x")
    code, _, err = sagl_cli("serve", run, "--token-file", words)
    assert (code, "give one of them" in err) == (2, True)


def test_a_port_that_is_taken(service, fitted, sagl_cli):
    port = urlsplit(service).port
    code, _, err = sagl_cli("serve", fitted / "run", "--port", port)
    assert code == 2
    assert f"port {port}: address already in use; choose another" in err


def test_a_token_from_the_environment(monkeypatch):
    assert _token(None) is None
    monkeypatch.setenv("SAGL_TOKEN", "s3cret")
    assert _token(None) == "s3cret"
    for wrong in ("", "two words", "naïve", "a\tb"):
        monkeypatch.setenv("SAGL_TOKEN", wrong)
        with pytest.raises(ValueError, match="the variable SAGL_TOKEN holds no token"):
            _token(None)
