"""A service is what its OpenAPI says: schemathesis finds no request that shows more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.conftest import backbones_of
from tests.serve.processes import ROOT, serving, stopped

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HOOKS = Path(__file__).parent / "schemathesis_hooks.py"


def explored(address, folder, *options):
    """All checks of schemathesis, on requests that fit and requests that do not."""
    program = Path(sys.executable).parent / "schemathesis"
    words = [program, "run", f"{address}/openapi.json", *options, "--no-color"]
    words += ["--phases", "examples,coverage,fuzzing", "--max-examples", "100"]
    words += ["--seed", "1", "--generation-database", "none"]
    words += ["--suppress-health-check", "all", "--request-timeout", "60"]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    # It keeps what it found where it runs.
    more = {"PYTHONPATH": paths, "SCHEMATHESIS_HOOKS": str(HOOKS)}
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, **more},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-500:]
    assert "No issues found" in done.stdout


def test_vectors(model, tmp_path):
    model.save(tmp_path / "run")
    with serving(tmp_path / "run", "--max-rows", "20") as (address, process):
        explored(address, tmp_path)
        assert stopped(process)[0] == 0


@pytest.mark.parametrize("kind", ["image", "text"])
def test_samples_and_a_token(kind, request, tmp_path):
    run = request.getfixturevalue("photos" if kind == "image" else "texts")
    options = [f"--backbone={each}" for each in backbones_of(kind)]
    with serving(run, "--max-rows", "20", *options, SAGL_TOKEN="s3cret") as service:
        address, process = service
        path = ["--include-path", f"/predict/{kind}s", "--include-path", "/model"]
        explored(address, tmp_path, "-H", "Authorization: Bearer s3cret", *path)
        assert stopped(process)[0] == 0
