"""The device's half of distributed releases: noise shares, and vectors masked for a secure sum.

Needs the extra ``ldpspatial-client[rounds]`` (cryptography and numpy). Names are imported when they
are first asked for; noise shares and terms need neither package.
"""

import importlib
from typing import TYPE_CHECKING, Any

from client_sdk.errors import ParameterError

if TYPE_CHECKING:
    from client_sdk.rounds.asked import Asked
    from client_sdk.rounds.campaign import Campaign
    from client_sdk.rounds.client import Client
    from client_sdk.rounds.document import RoundDocument
    from client_sdk.rounds.errors import ProtocolError
    from client_sdk.rounds.graph import Neighbours, choose_neighbours
    from client_sdk.rounds.noise import NoiseShare, checked_modulus, client_vector
    from client_sdk.rounds.participant import Participant
    from client_sdk.rounds.primitives import Identity, SigningKey
    from client_sdk.rounds.terms import Step, Terms
    from client_sdk.rounds.visiting import Ask, Told, visit

_HOMES = {
    "Ask": "visiting",
    "Told": "visiting",
    "visit": "visiting",
    "Participant": "participant",
    "RoundDocument": "document",
    "Campaign": "campaign",
    "Asked": "asked",
    "Client": "client",
    "Identity": "primitives",
    "Neighbours": "graph",
    "NoiseShare": "noise",
    "ProtocolError": "errors",
    "SigningKey": "primitives",
    "Step": "terms",
    "Terms": "terms",
    "checked_modulus": "noise",
    "choose_neighbours": "graph",
    "client_vector": "noise",
}

__all__ = [
    "Ask",
    "Asked",
    "Campaign",
    "Client",
    "Identity",
    "Neighbours",
    "NoiseShare",
    "Participant",
    "ProtocolError",
    "RoundDocument",
    "SigningKey",
    "Step",
    "Terms",
    "Told",
    "checked_modulus",
    "choose_neighbours",
    "client_vector",
    "visit",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (package := str(error.name).partition(".")[0]) not in ("cryptography", "numpy"):
            raise
        raise ParameterError(
            f"rounds need the package {package}: install ldpspatial-client[rounds]"
        ) from error
    found = getattr(module, name)
    globals()[name] = found
    return found
