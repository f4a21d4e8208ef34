"""A page in a browser, with an eye on what it says and asks for."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from tests.report.pages import Page


class Watched:
    """A page, its errors, its requests, and where its samples are on the screen."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.stopped: dict[str, str] = {}
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._stopped)
        page.on("dialog", self._dialog)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _stopped(self, request: Any) -> None:
        self.stopped[request.url] = request.failure

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def check_quiet(self, visits: int = 1) -> None:
        """No error, and no request but for the file itself."""
        assert self.errors == []
        outside = [url for url in self.requests if not url.startswith("data:")]
        assert len(outside) == visits, outside
        assert all(url.startswith("file:") for url in outside)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def download(self, selector: str) -> str:
        """What a button writes to a file."""
        with self.page.expect_download() as started:
            self.page.click(selector)
        path = started.value.path()
        return str(path.read_text(encoding="utf-8"))

    def places(self, payload: dict[str, Any]) -> np.ndarray:
        """Where each sample is in the window when all of the picture is shown."""
        self.page.click("#zoom-fit")
        self.page.evaluate("document.getElementById('explorer').scrollIntoView()")
        box = self.page.locator("#overlay").bounding_box()
        extent = np.array(payload["extent"])
        scale = 0.92 * min(box["width"] / extent[0], box["height"] / extent[1])
        xy = np.reshape(payload["xy"], (-1, 2))
        middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        return middle + (xy - extent / 2) * scale * [1, -1]


def payload_of(path: Any) -> dict[str, Any]:
    """The samples that a report carries."""
    return Page(path.read_text(encoding="utf-8")).payload


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def most_alone(places: np.ndarray) -> int:
    """The sample that is farthest from its nearest neighbour: a safe one to click."""
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return int(distance.min(axis=1).argmax())


def neighbours_of(
    payload: dict[str, Any], view: int, row: int
) -> list[tuple[int, float]]:
    about = payload["views"][view]
    here = slice(row * about["k"], (row + 1) * about["k"])
    rows, weights = about["rows"][here], about["weights"][here]
    return [(r, w) for r, w in zip(rows, weights, strict=True) if r >= 0]
