"""The device side of ldpspatial: one randomised grid cell per position, under local DP.

Standard library only. ``client_sdk.kernels`` (many reports at once) needs the extra ``[fast]``
and is imported only when asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from client_sdk.collection import Collection, DesignWarning
from client_sdk.errors import (
    BudgetError,
    ClientError,
    CollectionError,
    LedgerError,
    ParameterError,
    PositionError,
)
from client_sdk.grid import Grid
from client_sdk.mechanisms import response_table
from client_sdk.randomizer import Randomizer
from client_sdk.report import Report
from client_sdk.response import ResponseTable

if TYPE_CHECKING:
    from client_sdk.ledger import Ledger

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what costs time when it is first asked for: the ledger's SQLite, the kernels."""
    if name == "kernels":
        return importlib.import_module("client_sdk.kernels")
    if name == "Ledger":
        return importlib.import_module("client_sdk.ledger").Ledger
    raise AttributeError(f"module 'client_sdk' has no attribute {name!r}")


__all__ = [
    "BudgetError",
    "ClientError",
    "Collection",
    "CollectionError",
    "DesignWarning",
    "Grid",
    "Ledger",
    "LedgerError",
    "ParameterError",
    "PositionError",
    "Randomizer",
    "Report",
    "ResponseTable",
    "response_table",
]
