"""One fitted model for all tests of this package."""

import pytest

from sagl import SAGL


@pytest.fixture(scope="session")
def fitted(views):
    return SAGL(4, random_state=0).fit(views)
