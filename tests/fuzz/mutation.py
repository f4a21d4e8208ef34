"""Sound files changed at random: bytes, JSON values, headers, tensors, archives.

Each function takes ``draw``, which draws from a strategy of hypothesis.
"""

from __future__ import annotations

import copy
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import safetensors.torch
import torch
from hypothesis import strategies as st
from PIL import Image

from sagl.schema import checksum
from sagl.storage import tensors_sha256

Draw = Callable[[Any], Any]

VALUES = st.sampled_from(
    [
        *(None, True, False, -1, 0, 1, 2, 1 << 31, 1 << 63, 10**400, 0.5, -0.5, 1e308),
        *(float("inf"), float("nan"), "", "x", "\ud800", "../x", "os:system", "\0\n"),
        *([], {}, [[]], {"": 0}, [None], [1e9] * 3),
    ]
)
DEEPER = st.sampled_from([True, True, True, False])
NUMBERS = st.sampled_from(
    [-(1 << 63), -1, 0, 1, 2, 7, 511, 512, 1 << 16, 1 << 31, 1 << 40, 1 << 62]
)


def value_changed(tree: Any, draw: Draw) -> Any:
    """A JSON value with one place in it removed, replaced or doubled."""
    tree = copy.deepcopy(tree)
    place, key = None, None
    inner = tree
    while isinstance(inner, dict | list) and inner and (place is None or draw(DEEPER)):
        place = inner
        keys = sorted(inner) if isinstance(inner, dict) else range(len(inner))
        key = draw(st.sampled_from(keys))
        inner = inner[key]
    kind = draw(st.sampled_from(["remove", "replace", "replace", "add"]))
    if place is None:
        return draw(VALUES)
    if kind == "remove":
        del place[key]
    elif kind == "replace":
        place[key] = draw(VALUES)
    elif isinstance(place, list):
        place.append(draw(VALUES))
    else:
        place["more"] = draw(VALUES)
    return tree


def json_changed(content: bytes, draw: Draw) -> bytes:
    """A file of JSON, with one value changed; its checksum is right, or not there."""
    tree = json.loads(content)
    signed = isinstance(tree, dict) and tree.pop("checksum", None) is not None
    tree = value_changed(tree, draw)
    if signed and isinstance(tree, dict) and draw(st.booleans()):
        tree["checksum"] = checksum(tree)
    return json.dumps(tree).encode()


def lines_changed(content: bytes, draw: Draw) -> bytes:
    """A file with a JSON value on each line."""
    records = value_changed([json.loads(line) for line in content.splitlines()], draw)
    records = records if isinstance(records, list) else [records]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def bytes_changed(content: bytes, draw: Draw) -> bytes:
    """Bytes with some flipped, cut off, doubled or put in."""
    changed = bytearray(content)
    at = draw(st.integers(0, max(len(changed) - 1, 0)))
    match draw(st.sampled_from(["flip", "cut", "double", "insert"])):
        case "flip" if changed:
            changed[at] ^= 1 << draw(st.integers(0, 7))
        case "cut":
            del changed[at:]
        case "double":
            changed[at:at] = changed[at : at + 64]
        case _:
            changed[at:at] = draw(st.binary(max_size=16))
    return bytes(changed)


def header_changed(content: bytes, draw: Draw) -> bytes:
    """A safetensors file whose header is another."""
    (size,) = struct.unpack("<Q", content[:8])
    text = json_changed(content[8 : 8 + size], draw)
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


_SHAPES = st.lists(NUMBERS | st.sampled_from([True, 2.0, "3"]), max_size=4)
_DTYPES = st.sampled_from(
    [
        *(
            "<f4",
            ">f8",
            "<f2",
            "|b1",
            "|O",
            "<U4",
            "|S4",
            "<U0",
            "|V0",
            "<c8",
            "<M8[s]",
        ),
        *("<f16", "<U999999999", "|V8", [["a", "<f4"]], [["a", "|O"]], "nonsense", 4),
    ]
)


def npy_of(draw: Draw) -> bytes:
    """A .npy file whose header claims anything."""
    dtype = draw(_DTYPES)
    if isinstance(dtype, list):
        dtype = [tuple(field) for field in dtype]
    about = {"descr": dtype, "fortran_order": draw(VALUES | st.booleans())}
    about["shape"] = tuple(draw(_SHAPES))
    if draw(st.booleans()):
        about[draw(st.sampled_from(["shape", "descr", "more"]))] = draw(VALUES)
    text = f"{about}".encode("utf-8", "replace") + b"\n"
    version = draw(st.sampled_from([1, 1, 1, 2, 3, 0, 255]))
    size = draw(st.sampled_from([len(text), len(text), 0, 65_535]))
    length = struct.pack("<H" if version == 1 else "<I", size)
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + draw(st.binary())


def npz_of(draw: Draw) -> bytes:
    """A .npz file with such members, whose directory may lie."""
    file = io.BytesIO()
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(file, "w", method) as archive:
        names = draw(st.lists(st.sampled_from(["x.npy", "../y.npy", "/z", "data.npy"])))
        for name in dict.fromkeys(names):
            archive.writestr(name, npy_of(draw))
        if names and draw(st.booleans()):
            for field in ("file_size", "compress_size", "header_offset", "CRC"):
                if draw(st.booleans()):
                    number = draw(st.integers(0, (1 << 32) - 1))
                    setattr(archive.infolist()[0], field, number)
    return file.getvalue()


def tar_of(draw: Draw) -> bytes:
    """A tar file with members of any kind, with right checksums."""
    file = io.BytesIO()
    form = draw(st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
    names = ["1.txt", "1.json", "1.cls", "2.txt", "../3.txt", "/4.txt", "5", "a" * 200]
    kinds = [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE]
    kinds += [tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE, b"x", b"g", b"L", b"K", b"Z"]
    contents = [b"text", b"", b'{"label": 3}', b"[" * 3000, b"11 path=../x\n", b"\xff"]
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for _ in range(draw(st.integers(0, 4))):
            member = tarfile.TarInfo(draw(st.sampled_from(names)))
            member.type = draw(st.sampled_from([tarfile.REGTYPE, *kinds]))
            member.linkname = draw(st.sampled_from(["", "../x", "/etc/passwd"]))
            content = draw(st.sampled_from(contents))
            member.size = draw(st.just(len(content)) | NUMBERS.filter((-1).__lt__))
            keys = st.sampled_from(["path", "size", "GNU.sparse.major", "hdrcharset"])
            values = st.sampled_from(["1", "-1", "1e400", "-512", "../x", "BINARY"])
            if form == tarfile.PAX_FORMAT:
                member.pax_headers = draw(st.dictionaries(keys, values, max_size=2))
            tar.fileobj.write(member.tobuf(form, "utf-8", "surrogateescape"))
            tar.fileobj.write(content.ljust(-(-len(content) // 512) * 512, b"\0"))
            tar.offset = file.tell()
    return file.getvalue()


def tensors_changed(content: bytes, draw: Draw) -> bytes:
    """A file of ``write_tensors`` with one tensor changed, its checksum right."""
    (size,) = struct.unpack("<Q", content[:8])
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    tensors = safetensors.torch.load(content)
    name = draw(st.sampled_from(sorted(tensors)))
    x = tensors[name]
    match draw(st.sampled_from(["gone", "type", "shape", "fill", "more", "words"])):
        case "gone":
            del tensors[name]
        case "type":
            kinds = [torch.float64, torch.int8, torch.bool, torch.complex64]
            tensors[name] = x.to(draw(st.sampled_from(kinds)))
        case "shape":
            forms = [x.flatten(), x[None], x.flatten()[:1], x.flatten()[:0]]
            forms += [x.mT] if x.ndim > 1 else []
            tensors[name] = draw(st.sampled_from(forms)).contiguous()
        case "fill":
            fills = [-1.0, 7.0, float(1 << 30)]
            fills += [np.nan, np.inf] if x.is_floating_point() else []
            tensors[name] = torch.full_like(x, draw(st.sampled_from(fills)))
        case "more":
            names = ["adam.x.step", "adam.9.exp_avg", "network.", "", "labels.1"]
            tensors[draw(st.sampled_from(names))] = x.clone()
        case _:
            metadata[draw(st.sampled_from(sorted(metadata)))] = draw(
                st.sampled_from(["", "[]", "{}", "[" * 9000, "1e400", '{"step": -1}'])
            )
    metadata["sha256"] = tensors_sha256(tensors)
    return safetensors.torch.save(tensors, metadata)


def state_changed(content: bytes, draw: Draw) -> bytes:
    """The same with a value of its JSON ``state`` changed."""
    (size,) = struct.unpack("<Q", content[:8])
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    for name in ("state", "fingerprint"):
        if name in metadata and draw(st.booleans()):
            metadata[name] = json_changed(metadata[name].encode(), draw).decode()
    return safetensors.torch.save(safetensors.torch.load(content), metadata)


def image_of(draw: Draw) -> bytes:
    """A small picture in any mode and format, with metadata, and then damaged."""
    modes = ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr"]
    mode = draw(st.sampled_from(modes))
    size = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    image = Image.new(mode, size)
    form = draw(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM"]))
    exif = Image.Exif()
    exif[0x0112] = draw(st.integers(0, 9))  # which way is up
    file = io.BytesIO()
    try:
        image.save(file, form, exif=exif)
    except (OSError, ValueError):  # of this mode the format has none
        image.convert("RGB").save(file, form, exif=exif)
    content = file.getvalue()
    for _ in range(draw(st.integers(0, 3))):
        content = bytes_changed(content, draw)
    return content
