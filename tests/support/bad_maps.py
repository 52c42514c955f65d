"""Pairs of maps that every metric refuses, and what it says."""

import numpy as np

BAD_PAIRS = [
    ([1, 2], [1, 2], r"p: must be a 2-D array with at least one cell, not \(2,\)"),
    ([[1, 2]], [[1], [2]], r"q: must have the shape of p, \(1, 2\), not \(2, 1\)"),
    ([[1, 2]], [[1, 3]], "q: its total must equal that of p, 3.0, .* not 4.0"),
    ([[1, -2]], [[1, 2]], r"p\[0, 1\]: masses must be >= 0, not -2.0"),
    ([[1, 2]], [[1, np.inf]], r"q\[0, 1\]: masses must be finite, not inf"),
    ([[1, 2]], [[1, np.nan]], r"q\[0, 1\]: masses must be finite, not nan"),
    ([[0, 0]], [[0, 0]], "p: the total mass must be positive and finite, not 0.0"),
    ([["a", "b"]], [[1, 2]], "p: must hold real numbers"),
]
