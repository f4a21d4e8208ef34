"""What is fuzzed: files that somebody else may have made, and all that reads them.

A target puts what belongs to a file into a folder and says where the file itself goes;
``attempt`` writes any bytes there and reads them. What is read by hypothesis (in the
tests) and by atheris (``python -m tests.fuzz``) is the same.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from scipy.sparse import csr_matrix, save_npz

from sagl import SAGL
from sagl.baselines.registry import METHODS
from sagl.clusters.corrections import plan_of
from sagl.clusters.corrections_file import read_corrections
from sagl.clusters.names import Names, read_names
from sagl.experiments.fit import read_result
from sagl.experiments.table import cells, rows_of
from sagl.features import tables
from sagl.features.files import predictions_in, read_array, read_labels
from sagl.features.images import image_from_bytes, image_from_file
from sagl.features.manifest import make_plan
from sagl.features.number_tables import check_no_ids, check_same_index, read_identified
from sagl.features.readers import absolute, open_samples
from sagl.features.samples import Unreadable
from sagl.features.saved import read_saved
from sagl.features.store import FeatureStore, write_view
from sagl.features.store_tools import export, merge, verify
from sagl.features.store_write import begin, unfinished
from sagl.report.graph_file import stored_graph
from sagl.report.inputs import read_columns
from sagl.search.count import ClusterCount, CountPoint, kept_count
from sagl.search.journal import Journal
from sagl.storage import write_tensors
from sagl.views import Views
from tests.conftest import clustered_views

SECONDS = 10  # of the processor, at most, for a file of the corpus or of a test
LONGEST = 2_000  # letters of a line of error

Reader = Callable[[Path], Any]


class Target(NamedTuple):
    """A file, all that reads it, and sound files to begin with."""

    place: Callable[[Path], Path]  # fills a folder; the path of the file in it
    readers: tuple[Reader, ...]
    seeds: Callable[[], Iterable[bytes]]


def attempt(name: str, content: bytes) -> list[str | None]:
    """The line by which each reader refuses the content; None where it does not.

    Whatever else is raised is a fault, and so is a line that does not name the file, or
    a reader that takes very long.
    """
    target = TARGETS[name]
    return [_read(target, reader, content) for reader in target.readers]


def _read(target: Target, reader: Reader, content: bytes) -> str | None:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = target.place(folder / "here")
        path.write_bytes(content)
        began = time.process_time()
        line = None
        try:
            reader(path)
        except (ValueError, OSError) as error:
            line = str(error)
        took = time.process_time() - began
        others = [other.name for other in folder.iterdir() if other.name != "here"]
    assert took < SECONDS, f"{took:.1f} s"
    assert not others, f"written outside: {others}"
    if line is not None:
        assert "\n" not in line, line
        assert f"{folder / 'here'}" in line, line
        assert len(line) - len(f"{path}") < LONGEST, line
    return line


def _file(name: str) -> Callable[[Path], Path]:
    """A folder with one file."""

    def place(folder: Path) -> Path:
        folder.mkdir()
        return folder / name

    return place


def _copy_of(make: Callable[[Path], Any], name: str) -> Callable[[Path], Path]:
    """A folder as ``make`` makes it, with one file that is replaced."""

    def place(folder: Path) -> Path:
        shutil.copytree(_made(make), folder)
        return folder / name

    return place


@cache
def _made(make: Callable[[Path], Any]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="sagl-fuzz-")) / "here"
    folder.mkdir()
    make(folder)
    return folder


def _content_of(make: Callable[[Path], Any], name: str) -> Callable[[], list[bytes]]:
    return lambda: [(_made(make) / name).read_bytes()]


# Tables and arrays

_IDS = ["a", "b", "c"]


def _samples(path: Path, **options: Any) -> None:
    samples = open_samples(path, **options)
    for row in range(min(len(samples.ids), 50)):
        try:
            samples[row]
        except Unreadable:
            continue
    samples.describe()


def _text_of_columns(path: Path) -> None:
    for column in read_columns(path, _IDS):
        repr(column)


_TABLES = (
    read_array,
    read_labels,
    lambda path: read_array(path, "x"),
    lambda path: read_identified(path, None, "id"),
    lambda path: check_no_ids(path, None, joinable=True),
    _text_of_columns,
    _samples,
    partial(_samples, column="text", id_column="id", label_column="label"),
)
_TEXTS = (
    *_TABLES,
    lambda path: predictions_in(path, tables.read_columns(path, [None])),
)
_ROWS = [
    {"id": "a", "text": "one, two", "x": 1.5, "label": "cat"},
    {"id": "b", "text": 'so "quoted"', "x": -2.0, "label": "dog"},
    {"id": "c", "text": "=1+1", "x": 1e3, "label": "cat"},
]


def _csv(separator: str) -> list[bytes]:
    head = separator.join(_ROWS[0])
    rows = [
        separator.join('"{}"'.format(str(v).replace('"', '""')) for v in row.values())
        for row in _ROWS
    ]
    predicted = "sample,cluster,confidence\na,1,0.5".replace(",", separator)
    texts = ["\n".join([head, *rows]), predicted, f"1{separator}2\n3{separator}4"]
    texts += ["label\ncat\ndog", "7\n8"]
    return [f"{text}\n".encode() for text in texts]


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _safetensors() -> list[bytes]:
    from safetensors.torch import save

    kinds = [torch.float32, torch.bfloat16, torch.int64, torch.float8_e4m3fn]
    return [save({"x": torch.ones(3, 2, dtype=kind)}) for kind in kinds]


def _parquet() -> list[bytes]:
    tables = [
        pa.Table.from_pylist(_ROWS),
        pa.table({"x": pa.array([[1.0, 2], [3, 4]]), "id": ["a", "b"]}),
        pa.table({"x": pa.array([1, 2, 3], pa.int8()), "y": pa.array([1.0, None, 2])}),
        pa.table({"label": pa.array(["u", "v", "u"]).dictionary_encode()}),
    ]
    files = []
    for table in tables:
        file = io.BytesIO()
        pq.write_table(table, file, compression="none")
        files.append(file.getvalue())
    return files


def _tar() -> list[bytes]:
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in (("1.txt", b"one"), ("1.json", b'{"label": 1}')):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return [file.getvalue()[: 5 * 512]]


def _images() -> list[bytes]:
    from PIL import Image

    files = []
    for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM"):
        file = io.BytesIO()
        Image.new("RGB", (3, 2), "red").save(file, form)
        files.append(file.getvalue())
    return files


def _image(path: Path) -> None:
    """By its path and by its bytes; what is no picture is Unreadable in a few words."""
    for read, given in ((image_from_file, path), (image_from_bytes, path.read_bytes())):
        try:
            assert read(given).mode == "RGB"
        except Unreadable as error:
            raise ValueError(f"{path}: {error}") from None


# Feature stores


def _store(folder: Path) -> None:
    write_view(folder, "v", _IDS, np.eye(3, dtype=np.float32), labels=["x", "y", "x"])
    write_view(folder, "w", _IDS, np.ones((3, 2), np.float16))
    (folder / "skipped.csv").write_text("id,reason\nd,cut short\n")


def _key(folder: Path) -> str:
    return next(folder.glob("ids-*.txt")).stem.removeprefix("ids-")


def _read_store(path: Path) -> None:
    store = FeatureStore.open(_store_of(path))
    json.dumps(store.describe())
    joined = store.join(None, "inner")
    joined.views.fingerprint()
    for _, array in joined.views.items():
        array[:]
    json.dumps(absolute(joined.source))
    len(joined.ids), joined.labels


def _store_of(path: Path) -> Path:
    return next(above for above in path.parents if above.name == "here")


def _verify(path: Path) -> None:
    for line in verify(_store_of(path)):
        assert "\n" not in line


def _copy(path: Path) -> None:
    store = _store_of(path)
    merge([store], store / "merged")
    export(FeatureStore.open(store), store / "exported")


_STORES = (_read_store, _verify, _copy)


def _begun(folder: Path) -> None:
    """A store of which a view is not finished, though all of it is there."""
    plan = make_plan(_IDS, {"model": "m"}, "float32", 2, 2)
    view = begin(folder, "v", plan, _IDS, ["x", "y", "x"], {"reader": "table"})
    assert view is not None
    view.write(0, np.ones((2, 2)), [])
    view.write(1, np.empty((0, 2)), [("c", "cut short")])


def _finish(path: Path) -> None:
    for view in unfinished(_store_of(path)):
        assert len(view.pending) <= view.plan.n_pieces
    merge([_store_of(path)])
    _read_store(path)


_BEGUN = (_finish, _copy)

# Runs that are taken up


@cache
def _data() -> Views:
    return clustered_views(40, 2)[0]


def _fit(folder: Path, **more: Any) -> None:
    params = {"recipe": "network", "steps": 27, "batch_size": 20, "random_state": 0}
    params |= {"checkpoint_seconds": 0, "device": "cpu"}
    SAGL(2, checkpoint_dir=folder, **params | more).fit(_data())


def _fit_of_26_steps(folder: Path) -> None:
    """A training that is one step from its end."""

    class KilledError(Exception):
        pass

    def kill(trainer: Any) -> None:
        if trainer.step == 27:
            raise KilledError

    from sagl.training import Callback

    killer = Callback()
    killer.on_step = kill  # type: ignore[method-assign]
    try:
        _fit(folder, steps=28, callbacks=[killer])
    except KilledError:
        return
    raise AssertionError("it was not killed")


def _resume(path: Path) -> None:
    _fit(path.parent, steps=28)


_OF = {"n_clusters": 2, "data": "x"}


def _search(folder: Path) -> None:
    partitions = torch.zeros(2, 5, dtype=torch.int32)
    metadata = {"fingerprint": json.dumps(_OF)}
    write_tensors(
        folder / "checkpoint.safetensors", {"partitions": partitions}, metadata
    )


def _take_up(path: Path) -> None:
    journal = Journal(path.parent, _OF, n_samples=5)
    for _ in range(3):
        labels = journal(lambda: torch.zeros(5, dtype=torch.int64))
        assert labels.shape == (5,)
        assert 0 <= int(labels.min()) <= int(labels.max()) < 2


_POINT = CountPoint(2, 1.0, 0.1, 1.0, 1.0)
_ANSWER = ClusterCount(2, 2, 3, True, (_POINT,))


def _count(path: Path) -> None:
    json.dumps(kept_count(path, _OF, lambda: _ANSWER).as_dict())


# What is said of runs

_RUN = "r" * 64
_NAMED = Names({0: "cats", 1: "dogs"}, {0: "a"}).content(_RUN)


_CORRECTIONS = {
    "format": "sagl-corrections",
    "version": 1,
    "labels": {"0": 3, "1": "new"},
    "wrong": [2],
    "must_link": [["4", "5"]],
    "cannot_link": [["4", "6"]],
    "merge": [[0, 1]],
    "split": [2],
}


@cache
def _model() -> Any:
    return SAGL.load(Path(__file__).parents[1] / "data" / "run-0.1", "cpu")._model


def _corrections(path: Path) -> None:
    given = read_corrections(path, _model(), _RUN)
    try:
        plan_of(_model(), given)
    except ValueError as error:  # whose words are of corrections from anywhere
        raise ValueError(f"{path}: {error}") from None


def _graph(path: Path) -> None:
    graph = stored_graph(path.parent, 3)
    assert graph is not None
    (graph @ np.ones(3)).sum()
    graph[[0, 2]][:, [1, 2]].toarray()


def _graph_file() -> bytes:
    file = io.BytesIO()
    save_npz(file, csr_matrix(np.eye(3)))
    return file.getvalue()


_RESULT = {
    "scores": {"acc": 1.0, "nmi": 1.0, "ari": 1.0, "ami": 1.0, "n_clusters": 3},
    "label_free": {"linear": 1.0, "graph": 1.0, "agreement": 0.5, "total": 2.5},
    "seconds": 1.5,
    "peak_mib": 100.0,
    "curve": [[1.5, 1.0]],
    "warnings": [],
}


def _tabulate(path: Path) -> None:
    method = METHODS["kmeans"]
    tasks = [SimpleNamespace(method=method, seed=seed) for seed in range(2)]
    results = [(tasks[0], read_result(path)), (tasks[1], _RESULT)]
    cells(rows_of([method], results, {}))  # type: ignore[arg-type]


def _as_json(value: Any) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(value).encode()]


def _ids_beside(folder: Path) -> Path:
    folder.mkdir()
    np.save(folder / "x.npy", np.eye(3))
    return folder / "x.ids.txt"


def _saved(path: Path) -> None:
    saved = read_saved(f"npy:{path.with_name('x.npy')}")
    assert saved.ids is None or len(saved.ids) == 3


def _of_store(name: str, make: Callable[[Path], Any], readers: Any) -> Target:
    """A file of a store; KEY in its name is that of the samples."""

    def found() -> str:
        return name.replace("KEY", _key(_made(make))) if "KEY" in name else name

    return Target(
        lambda folder: _copy_of(make, found())(folder),
        readers,
        lambda: _content_of(make, found())(),
    )


TARGETS = {
    "npy": Target(
        _file("x.npy"),
        (read_array, read_labels),
        lambda: [_npy(np.eye(3)), _npy(np.array(["a", "b"])), _npy(np.arange(3))],
    ),
    "npz": Target(
        _file("x.npz"),
        (read_array, read_labels, lambda path: read_array(path, "x")),
        lambda: [_npz(x=np.eye(3)), _npz(x=np.ones(4), y=np.array(["a"]))],
    ),
    "safetensors": Target(
        _file("x.safetensors"), (read_array, read_labels), _safetensors
    ),
    "csv": Target(_file("x.csv"), _TEXTS, partial(_csv, ",")),
    "tsv": Target(_file("x.tsv"), _TEXTS, partial(_csv, "\t")),
    "jsonl": Target(
        _file("x.jsonl"),
        (_text_of_columns, _samples, _TABLES[-1]),
        lambda: ["".join(json.dumps(row) + "\n" for row in _ROWS).encode()],
    ),
    "parquet": Target(
        _file("x.parquet"),
        (*_TABLES, lambda path: check_same_index([path, path])),
        _parquet,
    ),
    "tar": Target(
        _file("x.tar"), (_samples, partial(_samples, label_column="label")), _tar
    ),
    "list": Target(
        _file("x.lst"),
        (_samples, partial(_samples, kind="text")),
        lambda: [b"a\nb\n", b"x.png\n\n/etc/y.png\n"],
    ),
    "lines": Target(
        _file("x.txt"),
        (_samples,),
        lambda: [b"one\ntwo\n", b"\xef\xbb\xbfeins\r\n\r\nzwei"],
    ),
    "image": Target(_file("x.png"), (_image,), _images),
    "ids": Target(_ids_beside, (_saved,), lambda: [b"a\nb\nc\n"]),
    "manifest": _of_store("manifest.json", _store, _STORES),
    "store-ids": _of_store("ids-KEY.txt", _store, _STORES),
    "store-labels": _of_store("labels-KEY.txt", _store, _STORES),
    "store-shard": _of_store("v/00000.npy", _store, _STORES),
    "store-skipped": _of_store("skipped.csv", _store, _STORES),
    "begun-plan": _of_store(".extracting/v/view.json", _begun, _BEGUN),
    "begun-samples": _of_store(".extracting/v/samples.json", _begun, _BEGUN),
    "begun-journal": _of_store(".extracting/v/00000.jsonl", _begun, _BEGUN),
    "begun-rows": _of_store(".extracting/v/00000.npy", _begun, _BEGUN),
    "checkpoint": _of_store("checkpoint.safetensors", _fit_of_26_steps, (_resume,)),
    "search": _of_store("checkpoint.safetensors", _search, (_take_up,)),
    "count": Target(
        _file("count.json"),
        (_count,),
        _as_json({"of": _OF, "count": _ANSWER.as_dict()}),
    ),
    "result": Target(_file("r.json"), (_tabulate,), _as_json(_RESULT)),
    "names": Target(
        _file("names.json"),
        (
            lambda path: read_names(path, _RUN),
            lambda path: read_names(path, _RUN, 2, _IDS),
        ),
        _as_json(_NAMED),
    ),
    "corrections": Target(
        _file("corrections.json"),
        (_corrections,),
        lambda: [*_as_json(_CORRECTIONS)(), *_as_json({**_NAMED, "wrong": []})()],
    ),
    "corrected": Target(
        _file("corrections.csv"),
        (_corrections,),
        lambda: [b"sample,cluster,wrong\n0,3,\n1,,1\n2,new,\n"],
    ),
    "graph": Target(_file("graph.npz"), (_graph,), lambda: [_graph_file()]),
}
