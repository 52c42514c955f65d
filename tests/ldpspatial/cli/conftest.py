"""What holds for all tests of the command line."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from matplotlib.figure import Figure

from tests.support.short_attacks import shorten_attacks
from tests.support.short_chains import shorten_chains

# A blank picture of one point.
BLANK = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8ffff"
    "ff7f0009fb03fd2a86e38a0000000049454e44ae426082"
)


@pytest.fixture(autouse=True)
def blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let figures be written as blank ones: to draw them takes most of the time of a small run.

    What is drawn is tested in ``tests/ldpspatial/plotting``; a test here that looks at a picture is
    marked ``pictures``, and processes that tests start draw theirs.
    """
    if request.node.get_closest_marker("pictures") is not None:
        return

    def write(figure: Figure, stream: BinaryIO, **_: Any) -> None:
        assert figure.axes
        stream.write(BLANK)

    monkeypatch.setattr(Figure, "savefig", write)


@pytest.fixture(scope="module", autouse=True)
def less_effort() -> Iterator[None]:
    """Let commands sample fields and attack maps briefly: what they make of it is tested here.

    By module: these folders are no packages, and what had the scope of one would last to the end.
    """
    with pytest.MonkeyPatch.context() as patch:
        shorten_chains(patch)
        shorten_attacks(patch)
        yield
