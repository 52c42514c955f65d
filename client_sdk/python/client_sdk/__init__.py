"""The device side of ldpspatial: one randomised grid cell per position, under local DP.

Standard library only. ``client_sdk.kernels`` (many reports at once) needs the extra ``[fast]``
and is imported only when asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from client_sdk.collection import Collection, DesignWarning
from client_sdk.errors import (
    AlreadyGivenError,
    BudgetError,
    ClientError,
    CollectionError,
    LedgerBusyError,
    LedgerError,
    LedgerUnavailableError,
    NotAskedError,
    ParameterError,
    PositionError,
)
from client_sdk.grid import Grid
from client_sdk.mechanisms import response_table
from client_sdk.randomizer import Randomizer
from client_sdk.report import Report
from client_sdk.response import ResponseTable

if TYPE_CHECKING:
    from client_sdk.device import Device
    from client_sdk.ledger import Ledger
    from client_sdk.sending import Answer, answer_of_http, https_sender
    from client_sdk.series import Series
    from client_sdk.uploader import Uploader

__version__ = "0.1.0"

# What costs time to import (SQLite, TLS) comes with its module when it is first asked for.
_LATE = {
    "Answer": "sending",
    "Device": "device",
    "Ledger": "ledger",
    "Series": "series",
    "Uploader": "uploader",
    "answer_of_http": "sending",
    "https_sender": "sending",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name, or the kernels, when it is first asked for."""
    if name == "kernels":
        return importlib.import_module("client_sdk.kernels")
    if name in _LATE:
        return getattr(importlib.import_module(f"client_sdk.{_LATE[name]}"), name)
    raise AttributeError(f"module 'client_sdk' has no attribute {name!r}")


__all__ = [
    "AlreadyGivenError",
    "Answer",
    "BudgetError",
    "ClientError",
    "Collection",
    "CollectionError",
    "DesignWarning",
    "Device",
    "Grid",
    "Ledger",
    "LedgerBusyError",
    "LedgerError",
    "LedgerUnavailableError",
    "NotAskedError",
    "ParameterError",
    "PositionError",
    "Randomizer",
    "Report",
    "ResponseTable",
    "Series",
    "Uploader",
    "answer_of_http",
    "https_sender",
    "response_table",
]
