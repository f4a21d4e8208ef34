"""Checks what is asked, asks the model, says what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from fastapi import HTTPException, Response
from numpy.typing import NDArray

from sagl._version import __version__
from sagl.estimator import DOUBTFUL, SAGL
from sagl.features.images import image_from_bytes
from sagl.features.samples import Unreadable, check_sample_text
from sagl.serve.backbones import Backbones
from sagl.serve.batching import Batcher, Said
from sagl.serve.bodies import JSON
from sagl.serve.limits import Limits
from sagl.serve.metrics import Metrics
from sagl.serve.schemas import Asked, ModelFacts, Neighbour, Prediction, View
from sagl.views import Views

Arrays = dict[str, NDArray[Any]]


class Service:
    """A model that is asked by many at once.

    What takes time is done in threads: those of the ``Batcher`` ask the model, one
    embeds samples, and a few read bodies and write answers.
    """

    def __init__(
        self, model: SAGL, limits: Limits, metrics: Metrics, backbones: Backbones | None
    ) -> None:
        self.model, self.limits, self.backbones = model, limits, backbones
        self._metrics = metrics
        self._batcher = Batcher(
            model, limits.threads, lambda rows: metrics.blocks.inc()
        )
        # Models and tokenizers need not be made for several threads; one is enough.
        self._embedding = ThreadPoolExecutor(1, "sagl-serve-embed")
        self._words = ThreadPoolExecutor(2, "sagl-serve-body")

    async def vectors(
        self, read: Callable[[bytes], Arrays], body: bytes, asked: Asked
    ) -> Response:
        """The answer for feature vectors in a body."""
        with refusing():
            views = await self._in_thread(lambda: self._checked(read(body)))
        return await self._answer(views, asked)

    async def texts(
        self, read: Callable[[bytes], list[str]], body: bytes, asked: Asked
    ) -> Response:
        """The answer for texts in a body."""
        with refusing():
            texts = await self._in_thread(lambda: read(body))
        return await self._samples(texts, [""] * len(texts), check_sample_text, asked)

    async def images(
        self, files: Sequence[tuple[str, bytes]], asked: Asked
    ) -> Response:
        """The answer for pictures as the bytes of files."""
        names = [f" ({name[:60]!r})" if name else "" for name, _ in files]
        contents = [content for _, content in files]
        return await self._samples(contents, names, image_from_bytes, asked)

    def facts(self) -> ModelFacts:
        """What ``/model`` says."""
        model, backbones = self.model, self.backbones
        made_by = {} if backbones is None else backbones.names
        n = model.n_clusters_
        return ModelFacts(
            sagl=__version__,
            recipe=model.recipe,
            views=[
                View(name=name, width=width, backbone=made_by.get(name))
                for name, width in zip(
                    model.view_names_, model.view_widths_, strict=True
                )
            ],
            samples=None if backbones is None else backbones.kind,
            n_samples=len(model.labels_),
            n_clusters=n,
            cluster_sizes=np.bincount(model.labels_, minlength=n).tolist(),
            names={str(k): name for k, name in sorted(model.names_.items())},
            anchors=len(model.anchors_[0]),
            mean_confidence=float(model.confidence_.mean()),
        )

    def close(self) -> None:
        """End the threads when they have done what waits."""
        self._embedding.shutdown(cancel_futures=True)
        self._batcher.close()
        self._words.shutdown()

    async def _samples(
        self,
        samples: Sequence[Any],
        names: Sequence[str],
        decode: Callable[[Any], Any],
        asked: Asked,
    ) -> Response:
        """Samples become vectors one by one, so that none depends on the others."""
        self._check_rows(len(samples))
        backbones = self.backbones
        assert backbones is not None

        def embed(row: int) -> Arrays:
            try:
                return backbones.embed(decode(samples[row]))
            except Unreadable as error:
                fault = f"{backbones.kind} {row}{names[row]}: {error}"
                raise ValueError(f"{fault}; mend it or leave it out") from None

        loop = asyncio.get_running_loop()
        waits = [
            loop.run_in_executor(self._embedding, embed, row)
            for row in range(len(samples))
        ]
        try:
            with refusing():
                parts = await asyncio.gather(*waits)
                arrays = {
                    k: np.concatenate([part[k] for part in parts]) for k in parts[0]
                }
                views = self._checked(arrays)
        finally:
            for wait in waits:  # one that cannot be read ends all
                wait.cancel()
        return await self._answer(views, asked)

    async def _answer(self, views: Views, asked: Asked) -> Response:
        model = self.model
        threshold = 0.0
        if asked.agreement is not None:
            if not hasattr(model, "doubt_"):
                with refusing():
                    model.threshold(asked.agreement)
            # Without the warning of an agreement that nobody reaches: labels say it.
            threshold = model.doubt_.threshold(asked.agreement)
        said = await self._batcher.ask(views, asked.neighbours)
        self._metrics.rows.inc(len(views))
        content = await self._in_thread(lambda: _written(model, said, asked, threshold))
        return Response(content, media_type=JSON)

    def _checked(self, arrays: Arrays) -> Views:
        """The views of the fit, as the model sees them: refused as ``predict`` does."""
        views = self.model.check_views(arrays)
        self._check_rows(len(views))
        return Views({name: a.astype(np.float32) for name, a in views.items()})

    def _check_rows(self, rows: int) -> None:
        if rows > self.limits.rows:
            fault = f"{rows:,} samples, at most {self.limits.rows:,} are taken at once"
            raise HTTPException(413, f"{fault}; send several requests")
        if rows == 0:
            raise HTTPException(422, "there are no samples; send at least one")

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._words, work)


@contextmanager
def refusing() -> Iterator[None]:
    """What is wrong with a request is said in one line."""
    try:
        yield
    except ValueError as error:
        raise HTTPException(422, " ".join(str(error).split())) from None


def _written(model: SAGL, said: Said, asked: Asked, threshold: float) -> str:
    """The answer as JSON, whose numbers are read back as the same bits."""
    labels, confidence = said.q.argmax(axis=1), said.q.max(axis=1)
    labels[confidence < threshold] = DOUBTFUL
    near = [[Neighbour(**one._asdict()) for one in row] for row in said.neighbours]
    return Prediction(
        labels=labels.tolist(),
        names=[model.names_.get(k) for k in labels.tolist()],
        confidence=confidence.tolist(),
        probabilities=said.q.tolist() if asked.probabilities else None,
        neighbours=near if asked.neighbours else None,
    ).model_dump_json(exclude_none=True)
