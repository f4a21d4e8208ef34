"""Fuzz a target by atheris, which goes where the code has not been yet.

    python -m tests.fuzz TARGET --seconds 60     one target
    python -m tests.fuzz --seconds 60            one after another, each for so long

What it begins with is the corpus. An input that ends in a fault is written to
``tests/fuzz/found``: mend the reader, and keep the input in the target's corpus.
``--keep`` adds inputs to the corpus that reach code which none in it reaches.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
LONGEST = 4_096  # bytes of an input
# Packages in which files are read by Python; C code is not looked into.
INSTRUMENTED = ["sagl", "zipfile", "tarfile"]


def fuzz(name: str, seconds: int, kept: Path) -> None:
    """Fuzz one target in this process, which ends."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import attempt

    (HERE / "found").mkdir(exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={HERE / 'found'}/{name}-",
        *("-rss_limit_mb=4096", "-timeout=60", "-print_final_stats=1"),
    ]
    places = [str(kept), str(HERE / "corpus" / name)]
    atheris.Setup([sys.argv[0], *options, *places], lambda data: attempt(name, data))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if find_spec("atheris") is None:
        print(
            "fuzz: atheris is not installed, so nothing was fuzzed; pip install "
            '-c constraints.txt -e ".[fuzz]" (the kept inputs are run by pytest)'
        )
        return 0
    if given.target is not None:
        with tempfile.TemporaryDirectory() as new:
            kept = HERE / "corpus" / given.target if given.keep else Path(new)
            fuzz(given.target, given.seconds, kept)
    from tests.fuzz.targets import TARGETS

    failed = []
    for name in TARGETS:
        order = [sys.executable, "-m", "tests.fuzz", name]
        order += ["--seconds", f"{given.seconds}", *["--keep"] * given.keep]
        done = subprocess.run(order, capture_output=True, text=True, errors="replace")
        lines = done.stderr.splitlines()
        runs = next((line for line in lines if "number_of_executed" in line), "")
        print(f"fuzz: {name}: {runs.rpartition(' ')[2]} inputs, code {done.returncode}")
        if done.returncode:
            failed.append(name)
            print(done.stdout[-2_000:], done.stderr[-2_000:], sep="\n")
    if failed:
        print(f"fuzz: faults in {', '.join(failed)}; see {HERE / 'found'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
