"""From JSON to values and back, by the types that describe what a file holds.

A file is described by a ``TypedDict`` (or a dataclass, or a ``NamedTuple``); ``Within``
gives limits and ``Since`` the version from which on a field must be there. Files of a
version before ``STRICT`` may have fields that are not described.
"""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

STRICT = 6
_MOST_BYTES = 1 << 26  # of a file: no such file is ever written
_MOST_SHOWN = 60
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}


class Within(NamedTuple):
    """Limits of a number, both included."""

    least: float
    most: float = 1e300


class Since(NamedTuple):
    """The first version whose files must have a field."""

    version: int


Count = Annotated[int, Within(0, (1 << 63) - 1)]
Positive = Annotated[int, Within(1, (1 << 63) - 1)]
Share = Annotated[float, Within(0, 1)]
AtLeast0 = Annotated[float, Within(0)]


def check(kind: Any, value: Any, place: str = "", version: int = STRICT) -> Any:
    """What JSON holds, as a value of this kind: records, and tuples out of lists.

    It is refused if it is not of the kind; the error names the place in the file.

    >>> check(tuple[Share, ...], [0.5, 1])
    (0.5, 1)
    >>> check(list[Share], [0.5, 2])
    Traceback (most recent call last):
    ValueError: [1] is 2; expected a number of 0 to 1
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is NotRequired:
        return check(args[0], value, place, version)
    if origin is Annotated:
        checked = check(args[0], value, place, version)
        for limits in args[1:]:
            if isinstance(limits, Within) and value is not None:
                _check_within(limits, value, place)
        return checked
    if origin in (Union, UnionType):
        return _check_one(args, value, place, version)
    if origin is Literal:
        if not any(value == each and type(value) is type(each) for each in args):
            raise _fault(place, value, f"one of {', '.join(map(repr, args))}")
        return value
    if origin in (list, tuple):
        _check_type(list, "a list", value, place)
        return origin(
            check(args[0], each, f"{place}[{i}]", version)
            for i, each in enumerate(value)
        )
    if origin is dict:
        _check_type(dict, "an object", value, place)
        return {
            check(args[0], name, place, version): check(
                args[1], each, _below(place, name), version
            )
            for name, each in value.items()
        }
    if kind in _WORDS:
        _check_plain(kind, value, place)
        return value
    return _check_record(kind, value, place, version)


def _check_record(kind: Any, value: Any, place: str, version: int) -> Any:
    _check_type(dict, "an object", value, place)
    hints = get_type_hints(kind, include_extras=True)
    where = f" in {place}" if place else ""
    known = {}
    for name, hint in hints.items():
        if name in value:
            known[name] = check(hint, value[name], _below(place, name), version)
            continue
        since = [each.version for each in get_args(hint) if isinstance(each, Since)]
        needed = get_origin(hint) is not NotRequired
        if needed and not (since and version < since[0]):
            raise ValueError(f"{name!r} is missing{where}")
    unknown = [name for name in value if name not in hints]
    if unknown and version >= STRICT:
        raise ValueError(f"{_shown(unknown[0])} is not known{where}")
    return {**value, **known} if is_typeddict(kind) else kind(**known)


def _check_one(kinds: Any, value: Any, place: str, version: int) -> Any:
    """One of several kinds; the error is that of the last."""
    *others, last = (kind for kind in kinds if kind is not NoneType)
    if value is None and NoneType in kinds:
        return None
    for kind in others:
        with suppress(ValueError):
            return check(kind, value, place, version)
    return check(last, value, place, version)


def _check_within(limits: Within, value: float, place: str) -> None:
    if not limits.least <= value <= limits.most:
        most = f" to {limits.most:g}" if limits.most < 1e18 else " or more"
        raise _fault(place, value, f"a number of {limits.least:g}{most}")


def _check_plain(kind: type, value: Any, place: str) -> None:
    fits = type(value) is kind or (kind is float and type(value) is int)
    if kind is float and fits:  # Python's integers may be beyond all floats
        fits = abs(value) <= Within(0).most and not math.isnan(value)
    if kind is str and fits:
        fits = is_unicode(value)
    if not fits:
        raise _fault(place, value, _WORDS[kind])


def is_unicode(text: str) -> bool:
    """Whether all characters are whole: JSON can say half of one, ``\\ud800``."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_type(kind: type, words: str, value: Any, place: str) -> None:
    if type(value) is not kind:
        raise _fault(place, value, words)


def _below(place: str, name: str) -> str:
    return f"{place}.{name[:_MOST_SHOWN]}" if place else name[:_MOST_SHOWN]


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return "a number of more than 64 bits"
    text = ascii(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _fault(place: str, value: Any, wanted: str) -> ValueError:
    return ValueError(f"{place or 'it'} is {_shown(value)}; expected {wanted}")


def read_json(path: Path) -> Any:
    """What a file of JSON holds; a ``ValueError`` says in what way it is none."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(f"it has {size:,} bytes, at most {_MOST_BYTES:,} are read")
    return parse_json(path.read_text(encoding="utf-8-sig"))


def parse_json(text: str) -> Any:
    """The same of a text."""
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what it cannot, such as a generator, as None."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else None


CHANGED = "its content is not what was written"


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """What goes to a file as JSON, with a checksum of all that will be read back."""
    content = json.loads(json.dumps(content))
    return {**content, "checksum": checksum(content)}


def check_signed(content: dict[str, Any]) -> None:
    """Refuse what was read if it was signed, and not so."""
    rest = {name: value for name, value in content.items() if name != "checksum"}
    if content.get("checksum") not in (None, checksum(rest)):
        raise ValueError(CHANGED)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; which of two values of one name is meant, nobody knows."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{_shown(name)} is there twice")
        found[name] = value
    return found


def checksum(value: Any) -> str:
    """Of a JSON value, however it is laid out in its file."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
