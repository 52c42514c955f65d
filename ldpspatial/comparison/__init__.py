"""How much error each trust model costs: releases played on the same people, side by side."""

from ldpspatial.comparison.compare import compare
from ldpspatial.comparison.curves import error_curve, plot_error_curves
from ldpspatial.comparison.scores import METRICS

__all__ = ["METRICS", "compare", "error_curve", "plot_error_curves"]
