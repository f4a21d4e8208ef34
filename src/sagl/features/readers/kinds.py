"""Whether strings are paths of pictures or texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sagl.features._errors import file_error
from sagl.features.decode import IMAGE_SUFFIXES, is_image_name
from sagl.features.samples import Kind

_SUFFIX = "|".join(sorted(suffix[1:] for suffix in IMAGE_SUFFIXES))
_PATH_AND_MORE = re.compile(rf"\S\.({_SUFFIX})[\s,;]+\S+$", re.IGNORECASE)


def decide_kind(
    path: Path, kind: Kind | None, strings: Iterable[tuple[str, str]]
) -> Kind:
    """``kind``, or what all strings look like; those that differ are refused.

    Strings that end in the suffix of a picture are paths, any others texts.

    Parameters
    ----------
    path : path
        The file they come from, for messages.
    kind : "image", "text" or None
        The user's word, which decides.
    strings : pairs of str
        Where each string stands (for messages) and the string.
    """
    if kind is not None:
        return kind
    picture = text = None
    for place, string in strings:
        if is_image_name(string):
            picture = picture or (place, string)
        elif _PATH_AND_MORE.search(string):
            raise file_error(
                path,
                f"{place} looks like a path with something after it: "
                f"{_short(string)}; write a .csv with the columns path and label, or "
                "say that these are texts (--kind text)",
            )
        else:
            text = text or (place, string)
        if picture and text:
            raise file_error(
                path,
                f"{picture[0]} ends like the path of a picture ({_short(picture[1])}) "
                f"and {text[0]} does not ({_short(text[1])}); say which they are: "
                "--kind image or --kind text",
            )
    return "image" if picture else "text"


def _short(string: str) -> str:
    return repr(string if len(string) <= 40 else string[:18] + "..." + string[-19:])
