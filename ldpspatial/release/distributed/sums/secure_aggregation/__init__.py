"""Secure aggregation: a server learns the sum of its clients' vectors and nothing else of them.

What is named here needs the package cryptography, and is imported when it is first asked for:
install ``ldpspatial[secure-aggregation]``.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpspatial.release.distributed.sums.secure_aggregation.aggregation import (
        SecureAggregation,
    )
    from ldpspatial.release.distributed.sums.secure_aggregation.client import Client
    from ldpspatial.release.distributed.sums.secure_aggregation.errors import (
        AbortedError,
        ProtocolError,
    )
    from ldpspatial.release.distributed.sums.secure_aggregation.graph import (
        Neighbours,
        choose_neighbours,
    )
    from ldpspatial.release.distributed.sums.secure_aggregation.server import Server
    from ldpspatial.release.distributed.sums.secure_aggregation.session import Outcome, enrol, play
    from ldpspatial.release.distributed.sums.secure_aggregation.terms import Step, Terms

_HOMES = {
    "aggregation": ("SecureAggregation",),
    "client": ("Client",),
    "errors": ("ProtocolError", "AbortedError"),
    "graph": ("Neighbours", "choose_neighbours"),
    "server": ("Server",),
    "session": ("Outcome", "enrol", "play"),
    "terms": ("Step", "Terms"),
}

__all__ = [
    "AbortedError",
    "Client",
    "Neighbours",
    "Outcome",
    "ProtocolError",
    "SecureAggregation",
    "Server",
    "Step",
    "Terms",
    "choose_neighbours",
    "enrol",
    "play",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
