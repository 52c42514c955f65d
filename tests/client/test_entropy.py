"""Uniform integers from bytes, and the reproducible streams of the tests."""

import pytest

from client_sdk import response_table
from client_sdk.entropy import DRAW_BYTES, below, system
from client_sdk.sampling import Sampler
from client_sdk.testing import FixedEntropy, StreamEntropy


def test_a_draw_takes_seven_bytes_at_a_time() -> None:
    sizes = []

    def entropy(n: int) -> bytes:
        sizes.append(n)
        return bytes(n)

    Sampler(response_table("dam", 3.5, 15)).draw(0, 0, entropy)
    assert sizes == [7]
    assert len(system(7)) == 7


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 255, 256, 257])
def test_below_is_uniform(bound: int) -> None:
    """Every value below the bound has one preimage behind the mask."""
    bits = (bound - 1).bit_length()
    values = []
    for u in range(1 << bits):
        try:
            values.append(below(bound, FixedEntropy(u.to_bytes(DRAW_BYTES, "big"))))
        except EOFError:
            assert u >= bound
    assert values == list(range(bound))


def test_streams_repeat_themselves_however_they_are_cut() -> None:
    whole = StreamEntropy("x")(1000)
    stream = StreamEntropy("x")
    assert b"".join(stream(n) for n in (1, 6, 0, 93, 400, 500)) == whole
    assert StreamEntropy("y")(1000) != whole
