"""What no schema can say, told to schemathesis."""

import numpy as np
import schemathesis
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.serve.conftest import picture


def _tensors(rows):
    return save({"wide": np.ones((rows, 12), "f4"), "narrow": np.ones((rows, 6), "f2")})


schemathesis.openapi.media_type(
    "application/octet-stream", st.integers(1, 20).map(_tensors)
)
schemathesis.openapi.format("binary", st.integers(0, 3).map(picture))


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """What is meant to fit has as many rows in every view, none of them in none."""
    if case.meta.generation.mode.is_positive and case.path == "/predict":
        views = case.body["views"]
        rows = zip(*views.values(), strict=False)
        there = [row for row in rows if any(one is not None for one in row)]
        there = there or [([0.0] * 12 if n == "wide" else [0.0] * 6 for n in views)]
        columns = zip(*there, strict=True)
        body = {name: [*rows] for name, rows in zip(views, columns, strict=True)}
        case.body = {"views": body}
