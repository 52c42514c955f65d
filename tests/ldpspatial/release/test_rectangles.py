"""Maps cut into rectangles: of whole cells, as equal as they can be, and evenly filled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.release.rectangles import cut, density_of, refined

sides = st.integers(1, 17)


def boxes(labels: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Sides of each label's box, which has to be full."""
    found = []
    for label in range(int(labels.max()) + 1):
        rows, columns = np.nonzero(labels == label)
        box = int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1
        assert len(rows) == box[0] * box[1]
        found.append(box)
    return found


@given(sides, sides, st.integers(1, 12))
def test_cuts_are_rectangles_of_nearly_equal_sides(rows: int, columns: int, parts: int) -> None:
    labels = cut((rows, columns), parts)
    found = boxes(labels)
    assert len(found) == min(parts, rows) * min(parts, columns)
    for axis in (0, 1):
        lengths = {box[axis] for box in found}
        assert max(lengths) - min(lengths) <= 1
    assert (np.diff(labels[:, 0]) >= 0).all()
    assert (np.diff(labels[0]) >= 0).all()


@settings(max_examples=50)
@given(sides, sides, st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_refinement_cuts_each_block_on_its_own(
    rows: int, columns: int, parts: int, seed: int
) -> None:
    blocks = cut((rows, columns), parts)
    wanted = np.random.default_rng(seed).integers(1, 6, int(blocks.max()) + 1).tolist()
    labels, block_of = refined(blocks, wanted)
    assert len(boxes(labels)) == len(block_of)
    assert (block_of[labels] == blocks).all()
    for (height, width), block in zip(boxes(blocks), range(len(wanted)), strict=True):
        inside = np.count_nonzero(block_of == block)
        assert inside == min(wanted[block], height) * min(wanted[block], width)


def test_density_clips_and_spreads() -> None:
    labels = np.array([[0, 0, 1], [2, 2, 1]])
    assert density_of(np.array([6.0, -5.0, 2.0]), labels).tolist() == [
        [0.375, 0.375, 0.0],
        [0.125, 0.125, 0.0],
    ]
    assert density_of(np.array([-1.0, 0.0, -2.0]), labels) == pytest.approx(np.full((2, 3), 1 / 6))
