"""Runs on the Hugging Face hub: a run is a directory, and so is a repository there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sagl.card import CARD
from sagl.clusters.names import FILE as NAMES
from sagl.environment import optional_module
from sagl.run import CONFIG, PARTS

_FILES = [CONFIG, *PARTS, NAMES, CARD]


class HubMethods:
    """For an estimator that can be saved and loaded."""

    def save(self, directory: str | Path) -> None:
        """Write it to a directory."""
        raise NotImplementedError

    @classmethod
    def load(cls, directory: str | Path, device: str = "auto") -> Self:
        """Read it from a directory."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, revision: str | None = None, device: str = "auto"
    ) -> Self:
        """Read a model from a directory, or from the Hugging Face hub by its name.

        Nothing in it is run: see ``SECURITY.md``. ``revision`` is a branch, a tag or a
        commit of the repository there.
        """
        return cls.load(find_run(name, revision), device)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None
    ) -> str:
        """Put the model into a repository of the Hugging Face hub; its address.

        It is made if it is not there yet. Features of the anchors and the names and
        clusters of the training samples go with it; pictures, texts and reports do
        not. Needs ``pip install "sagl[hub]"`` and ``hf auth login`` or a ``token``.
        """
        with tempfile.TemporaryDirectory() as place, _reaching(name) as hub:
            run = Path(place) / "run"
            self.save(run)
            api = hub.HfApi(token=token)
            made = api.create_repo(name, private=private, exist_ok=True)
            api.upload_folder(
                repo_id=made.repo_id,
                folder_path=run,
                allow_patterns=_FILES,
                commit_message="A run of sagl",
            )
            return str(made)


def find_run(name: str | Path, revision: str | None = None) -> Path:
    """A directory as it is, or a repository of the hub after a download."""
    directory = Path(name).expanduser()
    if directory.is_dir():
        if revision is not None:
            raise ValueError(
                f"{directory} is a directory here and has no revision {revision!r}; "
                "leave it out"
            )
        return directory
    with _reaching(str(name)) as hub:
        found = hub.snapshot_download(
            str(name), revision=revision, allow_patterns=_FILES
        )
        return Path(found)


@contextmanager
def _reaching(name: str) -> Iterator[Any]:
    """The library of the hub; its errors become one line with a cure."""
    hub = optional_module("huggingface_hub", "hub")
    errors = optional_module("huggingface_hub.errors", "hub")
    # HTTPError is of httpx or httpx2, by the version.
    expected = (OSError, errors.HFValidationError, errors.HTTPError)
    try:
        yield hub
    except expected as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"{name}: no directory here, and not reached on the Hugging Face hub "
            f"({reason}); check the name and the network, or log in: hf auth login"
        ) from None
