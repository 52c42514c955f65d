"""Secure aggregation: a server learns the sum of its clients' vectors and nothing else of them.

What clients run is in ``client_sdk.rounds``, and named here, too. It needs the package cryptography
(install ``ldpspatial[secure-aggregation]``) and is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from client_sdk import ClientError
from ldpspatial.errors import InputError

if TYPE_CHECKING:
    from client_sdk.rounds import Client, Neighbours, ProtocolError, Step, Terms, choose_neighbours
    from ldpspatial.release.distributed.sums.secure_aggregation.aggregation import (
        SecureAggregation,
    )
    from ldpspatial.release.distributed.sums.secure_aggregation.errors import AbortedError
    from ldpspatial.release.distributed.sums.secure_aggregation.server import Server
    from ldpspatial.release.distributed.sums.secure_aggregation.session import Outcome, enrol, play

_HOMES = {
    f"{__name__}.aggregation": ("SecureAggregation",),
    f"{__name__}.errors": ("AbortedError",),
    f"{__name__}.server": ("Server",),
    f"{__name__}.session": ("Outcome", "enrol", "play"),
    "client_sdk.rounds": (
        "Client",
        "Neighbours",
        "ProtocolError",
        "Step",
        "Terms",
        "choose_neighbours",
    ),
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
            try:
                found = getattr(importlib.import_module(module), name)
            except (ModuleNotFoundError, ClientError) as error:
                cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
                if str(getattr(cause, "name", "")).partition(".")[0] != "cryptography":
                    raise
                raise InputError(
                    "secure aggregation needs the package cryptography: "
                    "install ldpspatial[secure-aggregation]"
                ) from error
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
