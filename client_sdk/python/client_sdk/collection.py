"""The collection document: everything that a device and the server agree on.

Its id is the SHA-256 of its canonical text, so the meaning of an id never changes and a report
that names it can only mean these parameters. A device trusts the numbers in it, not the server:
:meth:`Collection.verify` recomputes the claim from the weights (docs/protocol.md, section 3).
"""

import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from client_sdk import canonical
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.grid import KINDS, Grid
from client_sdk.mechanisms import response_table
from client_sdk.response import ResponseTable
from client_sdk.validate import (
    MAX_CELLS,
    MAX_EPSILON,
    MICRO,
    WEIGHT_LIMIT,
    micro_epsilons,
    shown,
    whole_number,
    written_epsilon,
)
from client_sdk.verify import check_shape, verify_table

SCHEMA = "ldpspatial/collection/1"
MAX_REPORTS = 10**6

_FIELDS = {
    "schema", "name", "grid", "mechanism", "micro_epsilon", "max_reports",
    "base_weight", "output_size", "total_weight", "weights",
}  # fmt: skip
_BODY_FIELDS = _FIELDS - {"schema", "name", "max_reports"}
_GRID_FIELDS = {"kind", "south_e7", "west_e7", "height_e7", "width_e7", "cells"}


class DesignWarning(UserWarning):
    """A collection is private but will not do what its designer probably expects."""


@dataclass(frozen=True)
class Collection:
    """The agreed parameters of one collection; make one with :meth:`create` or :meth:`from_json`.

    Attributes
    ----------
    name : str
        What people call it, 1 to 200 characters.
    grid : Grid
    table : ResponseTable
    micro_epsilon : int
        Privacy loss of one report in millionths.
    max_reports : int
        Reports that one device may give to this collection.
    """

    name: str
    grid: Grid
    table: ResponseTable
    micro_epsilon: int
    max_reports: int = 1

    @classmethod
    def create(
        cls,
        name: str,
        grid: Grid,
        epsilon: object,
        mechanism: str = "dam",
        radius: int | None = None,
        max_reports: int = 1,
        squared_radius: int | None = None,
    ) -> "Collection":
        """Design a collection; see :func:`client_sdk.response_table` for the mechanism.

        ``epsilon`` must be a whole number of millionths, the unit in which devices count.
        Warns (:class:`DesignWarning`) where the disk is a single cell, unless ``squared_radius``
        asks for it, and where the document is longer than a :class:`Device` reads.

        Raises
        ------
        ParameterError
            A parameter breaks its rule, or the document would be longer than anybody reads.
        """
        if not isinstance(grid, Grid):
            raise ParameterError(f"grid must be a Grid, got {type(grid).__name__}")
        micro = micro_epsilons(epsilon)
        table = response_table(
            mechanism, Fraction(micro, MICRO), grid.cells, radius, squared_radius
        )
        if table.radius == 0 and squared_radius is None:
            warnings.warn(
                f"the disk radius is 0 at epsilon {micro / MICRO:g} and {grid.cells} cells: this "
                "is k-ary randomised response, which ignores distance; more cells give a disk",
                DesignWarning,
                stacklevel=2,
            )
        reports = whole_number("max_reports", max_reports, 1, MAX_REPORTS)
        collection = cls(name, grid, table, micro, reports)
        try:
            collection.verify()
        except CollectionError as error:  # the name: the rest was made above
            raise ParameterError(str(error)) from None
        length = _length(collection)
        if length > canonical.LONGEST:
            raise ParameterError(
                f"the design's document must have at most {canonical.LONGEST} characters, the most "
                f"that is ever read, got {length} at {grid.cells} cells and radius {table.radius}: "
                "fewer cells, a smaller radius or a larger epsilon make it shorter"
            )
        if length > canonical.LONGEST_JOINED:
            warnings.warn(
                f"no Device joins this: its document has {length} characters, more than "
                f"{canonical.LONGEST_JOINED}; fewer cells, a smaller radius or a larger epsilon "
                "make it shorter",
                DesignWarning,
                stacklevel=2,
            )
        return collection

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report."""
        return self.micro_epsilon / MICRO

    @cached_property
    def _text(self) -> str:
        return canonical.dumps({**self._header(), "weights": [list(r) for r in self.table.octant]})

    def to_json(self) -> str:
        """Return the canonical document."""
        return self._text

    @cached_property
    def digest(self) -> str:
        """The id of the collection: SHA-256 of the canonical document, 64 hexadecimal digits."""
        return canonical.digest(self._text)

    def _header(self) -> dict[str, Any]:
        """Return the document without its weights."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "max_reports": self.max_reports,
            **_design(self),
        }

    @classmethod
    def from_json(
        cls, text: str, digest: str | None = None, max_epsilon: object | None = None
    ) -> "Collection":
        """Read and verify a document.

        The longest text takes ten seconds and a gigabyte; an app with less to spare refuses
        long texts before it calls this.

        Parameters
        ----------
        text : str
            The document of at most 2^26 characters; white space and the order of fields do not
            matter.
        digest : str, optional
            The id that is expected; another document is refused. Give it unless the server is
            trusted: a document made for one device alone makes its reports linkable.
        max_epsilon : number, optional
            The most that this device accepts for one report; without it, 20.

        Raises
        ------
        CollectionError
            The document is malformed, was altered, or is not epsilon-LDP as it claims.
        """
        document = canonical.loads(text, "the collection document", canonical.LONGEST)
        collection = _parse(cls, document)
        collection.verify(digest, max_epsilon)
        return collection

    def verify(self, digest: str | None = None, max_epsilon: object | None = None) -> None:
        """Check the claim of this collection from its weights; CollectionError if it fails."""
        canonical.label(self.name, "name", 200)
        canonical.label(self.table.mechanism, "mechanism", 60)
        if self.table.cells != self.grid.cells:
            raise CollectionError("the table and the grid must have the same number of cells")
        canonical.integer(self.micro_epsilon, "micro_epsilon", 1, MAX_EPSILON * MICRO)
        canonical.integer(self.max_reports, "max_reports", 1, MAX_REPORTS)
        verify_table(self.table, Fraction(self.micro_epsilon, MICRO))
        canonical.check_expected(digest)
        if digest is not None and digest != self.digest:
            raise CollectionError(
                f"the collection document was altered: its id is {self.digest}, expected {digest}"
            )
        if max_epsilon is None:
            return
        if Fraction(self.micro_epsilon, MICRO) > written_epsilon("max_epsilon", max_epsilon):
            raise CollectionError(
                f"the collection's epsilon {self.epsilon:g} exceeds this device's cap {max_epsilon}"
            )


def body_of(collection: Collection) -> dict[str, Any]:
    """Return what the collections of a series have in common: no schema, name, max_reports."""
    return {**_design(collection), "weights": [list(row) for row in collection.table.octant]}


def parse_body(document: object) -> Collection:
    """Return a collection of one report per device, named "window", from what ``body_of`` wrote."""
    if not isinstance(document, dict):
        raise CollectionError("collection must be a JSON object")
    canonical.fields(document, _BODY_FIELDS, "collection")
    return Collection("window", *_parse_design(document))


def _design(collection: Collection) -> dict[str, Any]:
    grid = collection.grid
    table = collection.table
    return {
        "grid": grid_document(grid),
        "mechanism": table.mechanism,
        "micro_epsilon": collection.micro_epsilon,
        "base_weight": table.base_weight,
        "output_size": table.output_size,
        "total_weight": table.total_weight,
    }


def _length(collection: Collection) -> int:
    """Return len(collection.to_json()) without writing the weights out, which may be gigabytes."""
    rows = collection.table.octant
    # A row of k numbers has k - 1 commas, two brackets and, but for the first, a comma before it.
    weights = sum(sum(len(str(weight)) for weight in row) + len(row) + 2 for row in rows) - 1
    return len(canonical.dumps({**collection._header(), "weights": []})) + weights


def _parse(cls: type[Collection], document: dict[str, Any]) -> Collection:
    if document.get("schema") != SCHEMA:
        raise CollectionError(f"schema must be {SCHEMA!r}, got {shown(document.get('schema'))}")
    canonical.fields(document, _FIELDS, "the collection document")
    name = canonical.label(document["name"], "name", 200)
    reports = canonical.integer(document["max_reports"], "max_reports", 1, MAX_REPORTS)
    return cls(name, *_parse_design(document), reports)


def _parse_design(document: dict[str, Any]) -> tuple[Grid, ResponseTable, int]:
    grid = parse_grid(document["grid"])
    micro = canonical.integer(document["micro_epsilon"], "micro_epsilon", 1, MAX_EPSILON * MICRO)
    return grid, _parse_table(document, grid.cells, micro / MICRO), micro


def grid_document(grid: Grid) -> dict[str, Any]:
    """Return the grid as all documents hold it."""
    return {
        "kind": grid.kind,
        "south_e7": grid.south,
        "west_e7": grid.west,
        "height_e7": grid.height,
        "width_e7": grid.width,
        "cells": grid.cells,
    }


def parse_grid(document: object) -> Grid:
    """Return the grid that :func:`grid_document` wrote; CollectionError if it is none."""
    if not isinstance(document, dict):
        raise CollectionError("grid must be a JSON object")
    canonical.fields(document, _GRID_FIELDS, "grid")
    if document["kind"] not in KINDS:
        raise CollectionError(f"grid.kind must be one of {', '.join(KINDS)}")
    names = ("south_e7", "west_e7", "height_e7", "width_e7", "cells")
    limit = WEIGHT_LIMIT - 1
    numbers = [canonical.integer(document[n], f"grid.{n}", -limit, limit) for n in names]
    try:
        return Grid(document["kind"], *numbers)
    except ParameterError as error:
        raise CollectionError(f"grid: {error}") from None


def _parse_table(document: dict[str, Any], cells: int, epsilon: float) -> ResponseTable:
    mechanism = canonical.label(document["mechanism"], "mechanism", 60)
    rows = document["weights"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise CollectionError("weights must be a list of lists")
    most = 2 * MAX_CELLS + 1
    if len(rows) > most:
        raise CollectionError(f"weights must have at most {most} rows, got {len(rows)}")
    limit = WEIGHT_LIMIT - 1
    names = [f"weights[{x}]" for x in range(len(rows))]
    octant = tuple(
        tuple(canonical.integer(weight, name, 1, limit) for weight in row)
        for name, row in zip(names, rows, strict=True)
    )
    check_shape(octant)
    base = canonical.integer(document["base_weight"], "base_weight", 1, limit)
    table = ResponseTable(mechanism, epsilon, cells, base, octant)
    # Before the checks of base and weights: Python's totals do not overflow (a port's may).
    for field in ("output_size", "total_weight"):
        given = canonical.integer(document[field], field, 1, limit)
        if given != getattr(table, field):
            raise CollectionError(
                f"{field} must be {getattr(table, field)} for these weights, "
                f"got {given}: the document was altered"
            )
    return table
