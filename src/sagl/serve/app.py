"""The service as an ASGI application, and its description in OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.requests import ClientDisconnect

from sagl._version import __version__
from sagl.estimator import SAGL
from sagl.serve.backbones import Backbones
from sagl.serve.bodies import (
    BINARY,
    JSON,
    MULTIPART,
    body_of,
    first_fault,
    images_in,
    tensors_in,
    texts_in,
    vectors_in,
)
from sagl.serve.guard import HEALTH, Guard
from sagl.serve.limits import Limits
from sagl.serve.metrics import CONTENT_TYPE, Metrics
from sagl.serve.schemas import (
    Asked,
    Failure,
    Health,
    ModelFacts,
    Prediction,
    images_schema,
    texts_schema,
    vectors_schema,
)
from sagl.serve.service import Service, refusing

__all__ = ["create_app"]

_FAULTS = {
    400: "The body is not what its type says.",
    413: "Too many bytes, or too many samples.",
    415: "Another type of body than is taken here.",
    422: "A view, row or value that cannot be used.",
    429: "Too many requests at once; Retry-After says when to come back.",
    503: "Not done in time; Retry-After says when to come back.",
}
_TOKEN = {"type": "http", "scheme": "bearer"}
_Asked = Annotated[Asked, Query()]


def create_app(
    model: SAGL,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    backbones: Backbones | None = None,
) -> Guard:
    """An ASGI application that answers as ``model.predict`` does.

    Parameters
    ----------
    model : SAGL
        A fitted one.
    limits : Limits, optional
    token : str, optional
        That requests must bring, but for ``/health``.
    backbones : Backbones, optional
        By which pictures or texts become the model's views.

    Examples
    --------
    >>> from fastapi.testclient import TestClient
    >>> from sagl import SAGL
    >>> from sagl.serve.app import create_app
    >>> rows = [[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.1]] * 5
    >>> model = SAGL(2, random_state=0).fit({"left": rows, "right": rows})
    >>> with TestClient(create_app(model)) as client:
    ...     body = {"views": {"left": rows[:1], "right": rows[:1]}}
    ...     answer = client.post("/predict", json=body).json()
    >>> answer["labels"] == model.labels_[:1].tolist()
    True
    """
    limits, metrics = limits or Limits(), Metrics()
    service = Service(model, limits, metrics, backbones)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="sagl",
        version=__version__,
        summary="Clusters of samples, the same alone or in any company.",
        docs_url=None,  # pages that load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_exception_handler(RequestValidationError, _refused_query)
    app.add_exception_handler(ClientDisconnect, _cut_short)
    app.add_exception_handler(Exception, _failed)
    _add_facts(app, service, metrics)
    _add_vectors(app, service)
    if backbones is not None:
        add = _add_images if backbones.kind == "image" else _add_texts
        add(app, service)
    _describe(app, knows_doubt=hasattr(model, "doubt_"), needs_token=token is not None)
    return Guard(app, limits, metrics, token)


def _add_facts(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.get(HEALTH)
    async def health() -> Health:
        """Whether the service is alive and ready: it listens once a run is loaded."""
        return Health()

    @app.get("/model")
    async def model() -> ModelFacts:
        """What is served: views, clusters, names."""
        return service.facts()

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics_() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)


def _add_vectors(app: FastAPI, service: Service) -> None:
    model, most = service.model, service.limits.rows
    widths = dict(zip(model.view_names_, model.view_widths_, strict=True))

    may_miss = model.network_.has_heads
    body = vectors_schema(widths, most, may_miss=may_miss)

    @app.post("/predict", **_described(JSON, body))
    async def predict(request: Request, asked: _Asked) -> Response:
        """Clusters of feature vectors, as lists of rows by the name of their view."""
        body = await body_of(request, JSON)
        return await service.vectors(partial(vectors_in, widths), body, asked)

    binary = {"type": "string", "format": "binary"}

    @app.post("/predict/tensors", **_described(BINARY, binary))
    async def predict_tensors(request: Request, asked: _Asked) -> Response:
        """The same for many: a safetensors file with one matrix per view."""
        body = await body_of(request, BINARY)
        return await service.vectors(tensors_in, body, asked)


def _add_images(app: FastAPI, service: Service) -> None:
    most = service.limits.rows

    @app.post("/predict/images", **_described(MULTIPART, images_schema(most)))
    async def predict_images(request: Request, asked: _Asked) -> Response:
        """Clusters of pictures, as files of a form."""
        with refusing():
            files = await images_in(request, most)
        return await service.images(files, asked)


def _add_texts(app: FastAPI, service: Service) -> None:
    most = service.limits.rows

    @app.post("/predict/texts", **_described(JSON, texts_schema(most)))
    async def predict_texts(request: Request, asked: _Asked) -> Response:
        """Clusters of texts."""
        return await service.texts(texts_in, await body_of(request, JSON), asked)


def _described(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A body that is read here, in the words of OpenAPI."""
    content = {media_type: {"schema": schema}}
    return {
        "response_model": Prediction,
        "responses": {
            status: {"model": Failure, "description": text}
            for status, text in _FAULTS.items()
        },
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
    }


def _describe(app: FastAPI, *, knows_doubt: bool, needs_token: bool) -> None:
    """Say in OpenAPI what depends on the model, and what the guard asks for."""
    schema = app.openapi()
    failure = {"schema": {"$ref": "#/components/schemas/Failure"}}
    refused = {
        "description": "The token is missing or wrong.",
        "content": {JSON: failure},
    }
    if needs_token:
        schema["components"]["securitySchemes"] = {"token": _TOKEN}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if needs_token and path != HEALTH:
                operation["security"] = [{"token": []}]
                operation["responses"]["401"] = refused
            if not knows_doubt and "parameters" in operation:
                names = (each["name"] for each in operation["parameters"])
                operation["parameters"].pop([*names].index("agreement"))


async def _refused_query(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": first_fault(error)}, 422)


async def _cut_short(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "the body is cut short"}, 400)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    """A fault of ours: what it was is said to whoever runs the service, by uvicorn."""
    return JSONResponse({"detail": "the service failed; its log says why"}, 500)
