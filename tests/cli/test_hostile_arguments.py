"""Command lines of any words: an exit code and a message, never a traceback."""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sagl.cli import main

COMMANDS = ["info", "predict", "evaluate", "graph", "views", "fit", "extract", "store"]
OPTIONS = [
    *("--view", "--out", "--labels", "--agreement", "--join", "--id-column", "--json"),
    *("--clusters", "--steps", "--backbone", "--views", "--batch-size", "--seed", "--"),
    *("--force", "--device", "--quiet", "--protocol", "--no-refine", "--workers", "-q"),
    *("info", "verify", "merge", "export", "--format", "--kind", "--help", "--alpha"),
]
VALUES = [
    *(
        "RUN",
        "WIDE",
        "wide=WIDE",
        "narrow=NARROW",
        "TABLE",
        "a=TABLE",
        "FOLDER",
        "GONE",
    ),
    *(
        "",
        " ",
        "=",
        "::",
        "a=b::c",
        "npy:WIDE",
        "os:system",
        "hf:",
        "a" * 300,
        "\0",
        "é",
    ),
    *("\udcff", "0", "-1", "1e400", "nan", "9" * 400, "cpu", "inner", "id", "..", "/"),
    *("0.9", "2", "wide", "NEW/p.csv", "NEW/g.npz", "NEW/run", "text", "inductive"),
]


@pytest.fixture(scope="module")
def places(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    (folder / "t.csv").write_text("id,x,y\na,1,2\nb,3,4\nc,5,7\nd,6,1\n")
    (folder / "new").mkdir()
    np.save(folder / "rows.npy", np.eye(4))
    return {
        "RUN": fitted / "run",
        "WIDE": fitted / "wide.npy",
        "NARROW": fitted / "narrow.npy",
        "TABLE": folder / "t.csv",
        "FOLDER": folder,
        "GONE": folder / "gone",
        "NEW": folder / "new",
    }


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    command=st.sampled_from(COMMANDS),
    words=st.lists(st.sampled_from([*OPTIONS, *VALUES, *VALUES]), max_size=8),
)
def test_any_words(command, words, places, capsys):
    words = [command, *words]
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sagl", *words])
        with pytest.raises(SystemExit) as exit_:
            main.run()
    error = capsys.readouterr().err
    assert exit_.value.code in (None, 0, 1, 2)
    assert "Traceback" not in error
    if error.startswith("sagl: error: "):
        assert error.count("\n") == 1
