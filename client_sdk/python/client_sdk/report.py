"""Report: what leaves the device. A cell that was drawn, never a position."""

from dataclasses import dataclass

from client_sdk import canonical
from client_sdk.collection import Collection
from client_sdk.errors import CollectionError

SCHEMA = "ldpspatial/report/1"
HEX = frozenset("0123456789abcdef")

_FIELDS = {"schema", "collection", "id", "row", "col"}
_CELL_LIMIT = 1 << 20
LONGEST = 1024  # code points
# Every report is sent in the same number of bytes, whatever its cell. The canonical text has
# 168 to 182: its digits would tell the cell's.
BODY_BYTES = 192


@dataclass(frozen=True)
class Report:
    """One randomised cell for one collection.

    Attributes
    ----------
    collection : str
        Digest of the collection document.
    id : str
        16 random bytes as 32 hexadecimal digits: the same report sent twice counts once.
    row, col : int
        The reported output cell.
    """

    collection: str
    id: str
    row: int
    col: int

    def to_json(self) -> str:
        """Return the canonical text."""
        return canonical.dumps({"schema": SCHEMA, **self.__dict__})

    def to_body(self) -> str:
        """Return what is sent: the canonical text padded with spaces to 192 ASCII characters."""
        return self.to_json().ljust(BODY_BYTES)

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """Parse a report; raise CollectionError where it is malformed or over 1024 characters."""
        document = canonical.loads(text, "the report", LONGEST)
        if document.get("schema") != SCHEMA:
            raise CollectionError(f"schema must be {SCHEMA!r}")
        canonical.fields(document, _FIELDS, "the report")
        for field, length in (("collection", 64), ("id", 32)):
            value = document[field]
            if not isinstance(value, str) or len(value) != length or not HEX.issuperset(value):
                raise CollectionError(f"{field} must be {length} hexadecimal digits")
        row, col = (
            canonical.integer(document[f], f, -_CELL_LIMIT, _CELL_LIMIT) for f in ("row", "col")
        )
        return cls(document["collection"], document["id"], row, col)

    def check(self, collection: Collection) -> None:
        """Raise CollectionError unless this report can belong to the collection."""
        if self.collection != collection.digest:
            raise CollectionError(
                f"the report names collection {self.collection[:12]}..., "
                f"not {collection.digest[:12]}..."
            )
        if not collection.table.is_output(self.row, self.col):
            raise CollectionError(
                f"the report's cell ({self.row}, {self.col}) is outside the output domain"
            )
