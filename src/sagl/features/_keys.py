"""Which array, tensor or column of a file is meant."""

from __future__ import annotations

from pathlib import Path

from sagl.features._errors import file_error


def choose_key(path: Path, key: str | None, names: list[str], what: str) -> str:
    """The array or column to read: ``key``, or the only one there is."""
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if not names:
        raise file_error(path, f"holds no {what}; save at least one")
    if key is None and len(names) > 1:
        raise file_error(
            path,
            f"holds {len(names)} {what}s ({listed}); choose one by its key, "
            f"{path.name}::KEY on the command line",
        )
    if key is not None and key not in names:
        raise file_error(path, f"has no {what} {key!r}; choose one of: {listed}")
    return names[0] if key is None else key
