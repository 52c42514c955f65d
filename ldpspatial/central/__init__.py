"""Central differential privacy: a server that sees all data publishes a noisy map."""

from ldpspatial.central.laplace import Laplace, LaplaceTop
from ldpspatial.central.sparse_emd import SparseEmd

__all__ = ["Laplace", "LaplaceTop", "SparseEmd"]
