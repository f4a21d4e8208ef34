"""Checks made from types: what is right passes, what is wrong is named in one line."""

import json
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest

from sagl.schema import STRICT, Count, Share, Since, check, checksum, read_json


class Point(NamedTuple):
    x: float
    y: int


class Page(TypedDict):
    name: str
    kind: Literal["a", "b", 1]
    done: bool
    share: Share
    points: list[Point]
    sizes: dict[str, Count]
    width: Annotated[int | None, Since(3)]
    note: NotRequired[Any]
    number: int | str


GOOD = {
    **{"name": "x", "kind": "a", "done": True, "share": 1, "number": "auto"},
    **{"points": [{"x": 1, "y": 2}, {"x": -1.5, "y": 0}], "sizes": {"a": 3}},
    "width": None,
}


def test_what_is_right_passes():
    check(Page, GOOD)
    check(Page, GOOD | {"note": [{}], "width": 4, "kind": 1, "number": 7})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "name is 3; expected a text"),
        ({"name": "\ud800"}, "name is '\\ud800'; expected a text"),
        ({"kind": "c"}, "kind is 'c'; expected one of 'a', 'b', 1"),
        ({"kind": True}, "kind is True; expected one of"),
        ({"kind": 1.0}, "kind is 1.0; expected one of"),
        ({"done": 1}, "done is 1; expected true or false"),
        ({"share": 1.01}, "share is 1.01; expected a number of 0 to 1"),
        ({"share": float("nan")}, "share is nan; expected a number"),
        ({"share": True}, "share is True; expected a number"),
        ({"points": {}}, "points is an object; expected a list"),
        ({"points": [1]}, "points[0] is 1; expected an object"),
        ({"points": [{"x": 1}]}, "'y' is missing in points[0]"),
        ({"points": [{"x": 1, "y": 2, "z": 3}]}, "'z' is not known in points[0]"),
        ({"points": [{"x": 1e400, "y": 2}]}, "points[0].x is inf; expected a number"),
        ({"points": [{"x": 10**400, "y": 2}]}, "points[0].x is a number of more than"),
        ({"points": [{"x": 1, "y": 2.0}]}, "points[0].y is 2.0; expected a whole"),
        ({"sizes": {"a": -1}}, "sizes.a is -1; expected a number of 0 or more"),
        (
            {"sizes": {"a": 1 << 63}},
            "sizes.a is a number of more than 64 bits; expected",
        ),
        ({"width": "4"}, "width is '4'; expected a whole number"),
        ({"number": None}, "number is None; expected"),
        ({"number": 1.5}, "number is 1.5; expected a text"),
        ({"more": 1}, "'more' is not known"),
        ({"m" * 500: 1}, "mmm..."),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check(Page, GOOD | change)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", sorted(set(GOOD) - {"note"}))
def test_what_is_missing_is_named(name):
    less = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        check(Page, less)


def test_older_versions_may_lack_fields_and_have_others():
    less = {key: value for key, value in GOOD.items() if key != "width"}
    check(Page, less | {"colour": "red"}, version=2)
    with pytest.raises(ValueError, match="'width' is missing"):
        check(Page, less, version=3)
    check(Page, GOOD | {"colour": "red"}, version=STRICT - 1)


@pytest.mark.parametrize("value", [None, 3, "x", [], True])
def test_what_is_no_object_is_refused(value):
    with pytest.raises(ValueError, match="expected an object"):
        check(Page, value)


def test_the_checksum_is_that_of_the_value(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(GOOD, indent=3))
    assert checksum(read_json(tmp_path / "a.json")) == checksum(GOOD)
    assert checksum(GOOD | {"share": 0.5}) != checksum(GOOD)


def test_a_name_that_is_there_twice(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"a": [{"b": 1, "c": 1, "b": 2}]}')
    with pytest.raises(ValueError, match="'b' is there twice"):
        read_json(file)


def test_what_no_reader_could_take_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(path)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="at most 67,108,864 are read"):
        read_json(path)
