"""Bodies of requests: read strictly, and refused in one line that names the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import HTTPException, Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FailFast, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from starlette.datastructures import UploadFile
from typing_extensions import TypeAliasType

JSON, BINARY = "application/json", "application/octet-stream"
MULTIPART = "multipart/form-data"
_STRICT = ConfigDict(strict=True, extra="forbid")
_MOST_SHOWN = 40  # characters of a value

# By a name of its own: unions are of what can be hashed, which FailFast cannot.
_Row = TypeAliasType("_Row", Annotated[list[float], FailFast()])
_T = TypeVar("_T", bound=BaseModel)


class _Vectors(BaseModel):
    model_config = _STRICT
    views: dict[str, Annotated[list[_Row | None], FailFast()]]


class _Texts(BaseModel):
    model_config = _STRICT
    texts: Annotated[list[str], FailFast()]


async def body_of(request: Request, media_type: str) -> bytes:
    """The whole body, refused if it says to be of another kind."""
    check_type(request, media_type)
    return await request.body()


def check_type(request: Request, media_type: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        fault = f"the body is {given or 'of no stated type'}; send {media_type}"
        raise HTTPException(415, fault)


def vectors_in(widths: Mapping[str, int], body: bytes) -> dict[str, NDArray[Any]]:
    """Rows by the name of their view, from JSON; NaN for a view that is missed."""
    given = _read(_Vectors, body).views
    return {k: _matrix(k, rows, widths.get(k, 1)) for k, rows in given.items()}


def tensors_in(body: bytes) -> dict[str, NDArray[Any]]:
    """The same from a safetensors file: no more memory than the body takes."""
    try:
        return dict(load_tensors(body))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"the body is no safetensors file of plain numbers ({reason}); make it "
            "with safetensors.numpy.save"
        ) from None


def texts_in(body: bytes) -> list[str]:
    """Texts, from JSON."""
    return _read(_Texts, body).texts


async def images_in(request: Request, most: int) -> list[tuple[str, bytes]]:
    """Names and contents of the pictures of a form."""
    check_type(request, MULTIPART)
    async with request.form(max_files=most, max_fields=0) as form:
        files = form.multi_items()
        for name, file in files:
            if name != "images" or not isinstance(file, UploadFile):
                raise ValueError(
                    f"the form has a field {name[:_MOST_SHOWN]!r}; send pictures as "
                    "files of fields named 'images'"
                )
        if not files:
            raise ValueError("the form is empty; send pictures as files named 'images'")
        return [
            (file.filename or "", await file.read())
            for _, file in files
            if isinstance(file, UploadFile)
        ]


def first_fault(error: ValidationError | Any) -> str:
    """The first thing that is wrong, where, and with which value."""
    fault = error.errors()[0]
    place, said = _place(fault["loc"]), fault["msg"][:200]
    if fault["type"] in ("missing", "json_invalid", "extra_forbidden"):
        return f"{place}: {said}"
    shown = f"{fault['input']!r}"
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}…"
    return f"{place}: {said}; got {shown}"


def _read(kind: type[_T], body: bytes) -> _T:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None


def _place(loc: tuple[Any, ...]) -> str:
    match loc:
        case ():
            return "the body"
        case ("views", view, int(row), int(column)):
            return f"view {view!r}, row {row}, column {column}"
        case ("views", view, int(row)):
            return f"view {view!r}, row {row}"
        case ("views", view):
            return f"view {view!r}"
    return " ".join(str(part)[:_MOST_SHOWN] for part in loc)


def _matrix(
    name: str, rows: list[list[float] | None], width: int
) -> NDArray[np.float64]:
    """(n, width) where that is how wide all rows are."""
    widths = [len(row) for row in rows if row is not None]
    if len(set(widths)) == 1:
        width = widths[0]  # which the model refuses if it is another
    for i, row in enumerate(rows):
        if row is not None and len(row) != width:
            raise ValueError(
                f"view {name!r}: row {i} has {len(row)} numbers, not {width}; all rows "
                "of a view have as many"
            )
    filled = [[np.nan] * width if row is None else row for row in rows]
    return np.array(filled, dtype=np.float64).reshape(len(rows), width)
