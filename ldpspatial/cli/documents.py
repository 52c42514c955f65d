"""Documents that commands are given as files."""

from pathlib import Path

from client_sdk import Collection, Series
from ldpspatial.errors import InputError


def read_collection(path: Path) -> Collection:
    """Read and verify a collection document."""
    return Collection.from_json(read_document(path, "COLLECTION"))


def read_series(path: Path) -> Series:
    """Read and verify a series document."""
    return Series.from_json(read_document(path, "SERIES"))


def read_document(path: Path, argument: str) -> str:
    """Return the text of a document, or say which argument cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"{argument} cannot be read at {path}: {reason}") from None
