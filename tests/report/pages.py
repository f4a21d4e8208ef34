"""Runs to report on, and a reader of pages that knows nothing of the writer."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
from PIL import Image
from scipy.sparse import csr_matrix

from sagl.features.samples import Unreadable

HOSTILE = [
    "<script>window.hacked = 1</script>.jpg",
    "</script><img src=x onerror='window.hacked = 1'>",
    "\"quoted\" & 'single' <b>bold</b>",
    "=cmd|' /C calc'!A0, with a comma\nand a line",
    "{{ 7 * 7 }} {% raw %} ${7*7} `x`",
    "\u202egpj.exe right \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "emoji \U0001f9ec\U0001f469\u200d\U0001f52c \u2028 separator",
    "javascript:window.hacked=1",
    "half a character \udce4.jpg",
    "]]> <!-- comment <svg onload=window.hacked=1>",
]


class Pictures:
    """Coloured squares; the row in ``broken`` cannot be read."""

    kind = "image"
    labels = None

    def __init__(self, ids, size=(96, 64), broken=None):
        self.ids = list(ids)
        self.size = size
        self.broken = broken

    def __getitem__(self, row: int) -> Any:
        if row == self.broken:
            raise Unreadable("cut short")
        noise = np.random.default_rng(row).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        return Image.fromarray(noise).resize(self.size, Image.Resampling.BICUBIC)

    def describe(self) -> dict[str, Any]:
        return {"reader": "squares"}


class Texts:
    """Sentences."""

    kind = "text"
    labels = None

    def __init__(self, ids, texts):
        self.ids = list(ids)
        self.texts = list(texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row]

    def describe(self) -> dict[str, Any]:
        return {"reader": "sentences"}


def random_graph(n: int, degree: int, seed: int = 0) -> csr_matrix:
    """Rows that sum to one, with about ``degree`` entries and the diagonal."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), degree)
    columns = rng.integers(0, n, n * degree)
    weights = rng.random(n * degree) + 0.01
    everything = csr_matrix(
        (
            np.concatenate([weights, np.ones(n)]),
            (np.concatenate([rows, np.arange(n)]), np.concatenate([columns, range(n)])),
        ),
        shape=(n, n),
    )
    total = np.asarray(everything.sum(axis=1)).ravel()
    return csr_matrix(everything.multiply(1 / total[:, None]))


def unpack(text: str) -> dict[str, Any]:
    """The content of a payload, by the description of its format."""
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return content


class Page(HTMLParser):
    """What a browser would see: scripts, text, images and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside == "style":
            self.styles[-1] += data
        else:
            self.text.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def payload(self) -> dict[str, Any]:
        match = re.search(r'id="payload">([^<]*)</script>', self.html)
        assert match
        return unpack(match[1])
