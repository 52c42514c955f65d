"""How far from the own cell a report reaches."""

from math import pi, sqrt

import numpy as np

from ldpspatial.channels.protocol import Channel


def disk_radius(channel: Channel) -> float:
    """Return the radius, in cells, of a disk as large as the outputs that a cell makes likelier."""
    cells = np.zeros(channel.input_shape)
    cells[cells.shape[0] // 2, cells.shape[1] // 2] = 1
    likely = channel.forward(cells)[channel.support]
    likely = likely - likely.min()
    squares = float((likely**2).sum())
    area = float(likely.sum()) ** 2 / squares if squares > 0 else float(cells.size)
    return sqrt(min(area, cells.size) / pi)
