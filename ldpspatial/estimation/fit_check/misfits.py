"""What reports look like that were not drawn from the table: shapes the check of the fit looks for.

A shape is a distribution over output cells. Reports of which a share has that shape differ from
all that the channel gives in its direction, and one sum of counts along it sees them with far more
power than the sum of all squares does.
"""

from collections.abc import Iterator, Mapping
from math import ceil

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import Channel

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNRANDOMISED = "unrandomised reports"
EVEN = "the same everywhere"
LIFTED = "the disk alone"
Shapes = dict[str, Array]
RINGS = 4
TILES = 6  # along a side
BROAD = 0  # how finely is looked: what all densities are compared with
PATTERNS = 1  # rings and checkerboards, too
SPOTS = 2  # tiles, too, in which single spots and blocks are


def shapes(channel: Channel, density: Array, law: Array, detail: int) -> dict[str, Shapes]:
    """Return shapes by kind and name, (N,) distributions in the order of the support's entries.

    Kinds are "unrandomised", "patterns", a dozen that reach over the whole square, and "spots", a
    hundred small ones.

    Parameters
    ----------
    channel : Channel
    density : array shaped like the channel's input
        Where people are, as far as known: unrandomised reports are spread like it.
    law : (N,) array
        Its distribution of reports.
    detail : {BROAD, PATTERNS, SPOTS}
        How many shapes are worth their time.
    """
    support = channel.support
    true_cells: dict[str, Array] = {}
    spots: dict[str, Mask] = {}
    # LIFTED is what is likelier than everywhere alike: the part of reports that tells of the place.
    patterns: dict[str, Array | Mask] = {EVEN: np.ones(len(law)), LIFTED: law - law.min()}
    if isinstance(channel, StampChannel):
        radius = channel.table.radius
        true_cells[UNRANDOMISED] = np.pad(density, radius)[support]
        patterns |= {name: mask[support] for name, mask in _around(support, radius, detail)}
    if support.ndim == 2 and detail >= PATTERNS:
        patterns |= {name: mask[support] for name, mask in _patterns(support)}
    if support.ndim == 2 and detail >= SPOTS:
        spots = {name: mask[support] for name, mask in _tiles(support)}
    return {
        "unrandomised": _normalised(true_cells),
        "patterns": _normalised(patterns),
        "spots": _normalised(spots),
    }


def _normalised(named: Mapping[str, Array | Mask]) -> Shapes:
    return {name: shape / shape.sum() for name, shape in named.items() if shape.sum() > 0}


def _around(support: Mask, radius: int, detail: int) -> Iterator[tuple[str, Mask]]:
    """Yield the margin of the square, and rings of it."""
    inside = np.zeros(support.shape, bool)
    inside[radius : len(support) - radius, radius : len(support) - radius] = True
    margin = support & ~inside
    yield "the margin", margin
    if detail < PATTERNS:
        return
    width = max(1, ceil(radius / RINGS))
    far = scipy.ndimage.distance_transform_cdt(~inside, "chessboard")
    for start in range(0, radius, width):
        ring = margin & (far > start) & (far <= start + width)
        yield f"the margin, {start + 1} to {start + width} cells from the square", ring


def _patterns(support: Mask) -> Iterator[tuple[str, Mask]]:
    """Yield checkerboards."""
    rows, cols = np.indices(support.shape)
    for side in (1, 2):
        even = (rows // side + cols // side) % 2 == 0
        yield f"a checkerboard of {side} x {side} cells", support & even
        yield f"the other checkerboard of {side} x {side} cells", support & ~even


def _tiles(support: Mask) -> Iterator[tuple[str, Mask]]:
    """Yield two tilings, half a tile apart: a spot on the edge of one lies within the other."""
    rows, cols = np.indices(support.shape)
    for moved in (0.0, 0.5):
        down = np.floor(rows * TILES / support.shape[0] + moved).astype(int)
        across = np.floor(cols * TILES / support.shape[1] + moved).astype(int)
        for row in range(down.max() + 1):
            for col in range(across.max() + 1):
                tile = support & (down == row) & (across == col)
                if tile.any():
                    yield _extent(tile), tile


def _extent(tile: Mask) -> str:
    rows, cols = np.nonzero(tile)
    return f"rows {rows.min()} to {rows.max()}, columns {cols.min()} to {cols.max()} of outputs"
