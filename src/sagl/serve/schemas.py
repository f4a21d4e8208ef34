"""What is sent and what is answered, as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

_TOO_LARGE = 2.0**128 - 2.0**103  # the least number that float32 rounds to infinity
MOST_NEIGHBOURS = 100
# A character that Python does not strip; what \S means differs among languages.
NOT_BLANK = (
    r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_Share = Annotated[float, Field(gt=0, le=1)]


class Asked(BaseModel):
    """What a request asks for; in its query."""

    model_config = ConfigDict(extra="forbid")

    agreement: _Share | SkipJsonSchema[None] = Field(
        None,
        description="Label -1 for doubtful samples; the others keep their cluster so "
        "often when the search starts elsewhere, e.g. 0.9.",
    )
    probabilities: bool = Field(False, description="Those of all clusters, too.")
    neighbours: int = Field(
        0,
        ge=0,
        le=MOST_NEIGHBOURS,
        description="So many training samples that each sample attends to most.",
    )


class Neighbour(BaseModel):
    """A training sample that a sample attends to."""

    sample: str | int = Field(description="Its id, or its row where it has no id.")
    cluster: int
    weight: float = Field(description="Of the attention, which sums to at most 1.")


class Prediction(BaseModel):
    """One entry per sample, in the order of the request."""

    labels: list[int] = Field(description="Clusters; -1 for doubtful samples.")
    names: list[str | None] = Field(description="Of the clusters that have one.")
    confidence: list[float] = Field(description="Probability of the likeliest cluster.")
    probabilities: list[list[float]] | SkipJsonSchema[None] = None
    neighbours: list[list[Neighbour]] | SkipJsonSchema[None] = None


class Failure(BaseModel):
    """Why there is no answer, and what helps, in one line."""

    detail: str


class Health(BaseModel):
    """The service answers; it is ready whenever it does."""

    status: Literal["ready"] = "ready"


class View(BaseModel):
    """A view that the model was fitted on."""

    name: str
    width: int
    backbone: str | None = Field(description="That makes it from samples, if any does.")


class ModelFacts(BaseModel):
    """What is served, in brief; ``sagl info`` says more."""

    sagl: str
    recipe: str
    views: list[View]
    samples: Literal["image", "text"] | None = Field(
        description="What is taken beside feature vectors."
    )
    n_samples: int
    n_clusters: int
    cluster_sizes: list[int]
    names: dict[str, str]
    anchors: int
    mean_confidence: float


def vectors_schema(
    widths: Mapping[str, int], rows: int, *, may_miss: bool
) -> dict[str, Any]:
    """Of the JSON body of ``/predict``: lists of rows, by the name of their view.

    ``may_miss`` says whether samples may miss some of the views.
    """
    limits = {"exclusiveMinimum": -_TOO_LARGE, "exclusiveMaximum": _TOO_LARGE}
    number = {"type": "number", **limits}

    def of_view(width: int) -> dict[str, Any]:
        row: dict[str, Any] = {
            "type": "array",
            "items": number,
            "minItems": width,
            "maxItems": width,
        }
        if may_miss:
            missed = {"type": "null", "description": "The sample misses this view."}
            row = {"anyOf": [row, missed]}
        return {"type": "array", "items": row, "minItems": 1, "maxItems": rows}

    views = {
        "type": "object",
        "properties": {name: of_view(width) for name, width in widths.items()},
        "required": list(widths),
        "additionalProperties": False,
        "description": "Row i of every view is of the same sample.",
    }
    return _only("views", views)


def texts_schema(rows: int) -> dict[str, Any]:
    """Of the JSON body of ``/predict/texts``."""
    text = {"type": "string", "pattern": NOT_BLANK}
    texts = {"type": "array", "items": text, "minItems": 1, "maxItems": rows}
    return _only("texts", texts)


def images_schema(rows: int) -> dict[str, Any]:
    """Of the multipart body of ``/predict/images``."""
    file = {"type": "string", "format": "binary"}
    images = {"type": "array", "items": file, "minItems": 1, "maxItems": rows}
    return _only("images", images)


def _only(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }
