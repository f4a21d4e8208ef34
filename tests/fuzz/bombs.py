"""Small files that claim, or become, very much: the memory of each is measured.

    python -m tests.fuzz.bombs [BOMB …]

prints a line of JSON for each, or for some. What files may become is set to 64 MiB
here, so that bombs may be small; the rule is the same.
"""

from __future__ import annotations

import io
import json
import resource
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import sagl.features.samples
from tests.fuzz.targets import TARGETS, attempt

MOST = 1 << 26
DEEP = "[" * 1_000_000


def _header(shape: str, descr: str = "<f4", version: int = 1) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n"
    form = "<H" if version == 1 else "<I"
    size = struct.pack(form, len(text) if version == 1 else (1 << 32) - 1)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + bytes(64)


def _zipped(content: bytes, claimed: int | None = None, times: int = 1) -> bytes:
    """A .npz file: the content, then so many times 16 MiB of zeros."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    parts = [squeeze.compress(content) + squeeze.flush(zlib.Z_FULL_FLUSH)]
    zeros = squeeze.compress(bytes(1 << 24)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    data = b"".join([*parts, *[zeros] * times, squeeze.flush()])
    size = len(content) + (times << 24) if claimed is None else claimed
    name = b"x.npy"
    checksum = 0 if times else zlib.crc32(content)
    sizes = struct.pack("<III", checksum, len(data), size)
    local = struct.pack("<IHHHHH", 0x04034B50, 20, 0, 8, 0, 0) + sizes
    local += struct.pack("<HH", len(name), 0) + name
    entry = struct.pack("<IHHHHHH", 0x02014B50, 20, 20, 0, 8, 0, 0) + sizes
    entry += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(entry), 0, 0)
    end = end[:16] + struct.pack("<IH", len(local) + len(data), 0)
    return local + data + entry + end


def _lzma() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", bytes(1 << 20))
    return file.getvalue()


def _safetensors(shape: list[int], n_bytes: int) -> bytes:
    about = {"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, n_bytes]}}
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def _parquet(column: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": column}), file)
    return file.getvalue()


def _lists() -> pa.Array:
    values = pa.array(np.zeros(12_000_000, np.int8))
    return pa.FixedSizeListArray.from_arrays(values, 3_000_000)


def _png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", size), *chunks, (b"IDAT", b""), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _gif() -> bytes:
    file = io.BytesIO()
    Image.new("P", (1, 1)).save(file, "GIF")
    content = bytearray(file.getvalue())
    content[6:10] = b"\xff" * 4
    return bytes(content)


def _tar(size: int, kind: bytes = tarfile.REGTYPE, content: bytes = b"") -> bytes:
    member = tarfile.TarInfo("1.json")
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT) + content.ljust(2048, b"\0")


def _manifest(**plan: int) -> bytes:
    [content] = TARGETS["manifest"].seeds()
    tree = json.loads(content)
    tree.pop("checksum")
    tree["views"]["v"] |= plan
    return json.dumps(tree).encode()


def _begun(**plan: int) -> bytes:
    [content] = TARGETS["begun-plan"].seeds()
    tree = json.loads(content)
    tree["plan"] |= plan
    return json.dumps(tree).encode()


def _many_fields() -> bytes:
    first = json.dumps({f"{i}": 0 for i in range(2_000)})
    return f"{first}\n".encode() + b"{}\n" * 20_000


_TEXT_BOMB = zlib.compress(bytes(1 << 24), 9)
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "10¹⁵ rows": ("npy", lambda: _header("(1000000000000000, 4)")),
    "10¹⁵ rows of nothing": ("npy", lambda: _header("(1000000000000000,)", "<U0")),
    "a header of 4 GiB": ("npy", lambda: _header("(1, 4)", version=2)),
    "10¹⁵ rows in a zip": (
        "npz",
        lambda: _zipped(_header("(1000000000000000,)"), times=0),
    ),
    "zip bomb": ("npz", lambda: _zipped(_header("(2147483648,)", "|b1"), times=128)),
    "zip bomb that lies": ("npz", lambda: _zipped(_header("(9,)"), 200, times=128)),
    "zip that claims": ("npz", lambda: _zipped(_header("(9,)"), 1 << 31, times=0)),
    "zip by lzma": ("npz", _lzma),
    "graph of zeros": ("graph", lambda: _zipped(_header("(9,)"), times=128)),
    "tensor of 10¹⁵ rows": ("safetensors", lambda: _safetensors([10**15, 1], 8)),
    "tensor that claims": ("safetensors", lambda: _safetensors([1 << 40], 1 << 42)),
    "header of 2⁶³ bytes": ("safetensors", lambda: struct.pack("<Q", 1 << 63)),
    "12,000,000 zeros": ("parquet", lambda: _parquet(pa.array(np.zeros(12_000_000)))),
    "lists of zeros": ("parquet", lambda: _parquet(_lists())),
    "one long string, often": (
        "parquet",
        lambda: _parquet(
            pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(1_000_000, np.int32)), ["x" * 100_000]
            )
        ),
    ),
    "one long string as plain text, often": (
        "parquet",
        lambda: _parquet(pa.array(["x" * 100_000] * 2_000)),
    ),
    "one long label": ("csv", lambda: b"label\n" + b"x" * 100_000 + b"\ny" * 20_000),
    "many fields, then none": ("jsonl", _many_fields),
    "deep lines": ("jsonl", lambda: f'{{"x": {DEEP}\n'.encode()),
    "deep names": ("names", DEEP.encode),
    "deep result": ("result", DEEP.encode),
    "deep manifest": ("manifest", DEEP.encode),
    "deep plan": ("begun-plan", DEEP.encode),
    "deep samples": ("begun-samples", DEEP.encode),
    "deep journal": ("begun-journal", lambda: f"{DEEP}\n".encode()),
    "deep member": ("tar", lambda: _tar(2048, content=b"[" * 2048)),
    "1e400": ("names", lambda: b'{"format": 1e400, "version": 1e400}'),
    "200,000 names": (
        "names",
        lambda: json.dumps(
            {
                **json.loads(*TARGETS["names"].seeds()),
                "clusters": dict.fromkeys(map(str, range(200_000)), "same"),
            }
        ).encode(),
    ),
    "store of 2³⁰ columns": ("manifest", lambda: _manifest(dim=1 << 30)),
    "store of 2⁶² rows": ("manifest", lambda: _manifest(rows=1 << 62)),
    "begun, of 2⁶² pieces": ("begun-plan", lambda: _begun(n_samples=1 << 62)),
    "begun, of 2³⁰ columns": ("begun-plan", lambda: _begun(dim=1 << 30)),
    "picture of 10¹⁰ pixels": ("image", lambda: _png(100_000, 100_000)),
    "picture with a long text": (
        "image",
        lambda: _png(1, 1, (b"zTXt", b"k\0\0" + _TEXT_BOMB)),
    ),
    "picture with a long profile": (
        "image",
        lambda: _png(1, 1, (b"iCCP", b"k\0\0" + _TEXT_BOMB)),
    ),
    "animation of 65,535²": ("image", _gif),
    "member of 8 GiB": ("tar", lambda: _tar(8**11 - 1)),
    "name of 8 GiB": ("tar", lambda: _tar(8**11 - 1, tarfile.XHDTYPE)),
    "name of 8 GiB in GNU's way": ("tar", lambda: _tar(8**11 - 1, b"L")),
    "name of 10,000 digits": ("tar", lambda: _tar(10_000, b"x", b"1" * 10_000)),
}


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) << 10


def main() -> None:
    sagl.features.samples.MOST_BYTES = MOST
    chosen = sys.argv[1:] or list(BOMBS)
    for target in {BOMBS[name][0] for name in chosen}:
        TARGETS[target].seeds()  # all that is imported and made on first use
    most = _status("VmSize") + (4 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for name, (target, make) in ((name, BOMBS[name]) for name in chosen):
        content = make()
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
        before, began = _status("VmRSS"), time.process_time()
        lines = attempt(target, content)
        found = {"bomb": name, "bytes": len(content), "lines": lines}
        found["growth"] = _status("VmHWM") - before
        found["seconds"] = round(time.process_time() - began, 2)
        json.dump(found, sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
