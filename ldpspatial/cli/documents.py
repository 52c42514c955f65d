"""Files that commands are given: documents, and whose fault it is where one cannot be used."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from client_sdk import ClientError, Collection, Series
from ldpspatial.errors import InputError


def read_collection(path: Path) -> Collection:
    """Read and verify a collection document."""
    with blamed("COLLECTION", path):
        return Collection.from_json(read_document(path))


def read_series(path: Path) -> Series:
    """Read and verify a series document."""
    with blamed("SERIES", path):
        return Series.from_json(read_document(path))


def read_document(path: Path) -> str:
    """Return the text of a document."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"cannot be read: {reason}") from None


@contextmanager
def blamed(argument: str, path: Path, **options: str) -> Iterator[None]:
    """Let errors within name the argument and its file, as they were typed.

    Parameters
    ----------
    argument : str
        As "POINTS" or "--prior", whose file is read.
    path : Path
    **options : str
        What is typed for other parameters of the reader: ``column="--prior-column"``.
    """
    named = {"path": argument, argument.lstrip("-").lower(): argument, **options}

    def words(message: str) -> str:
        subject, must, rule = message.partition(" must ")
        told = f"{named[subject]} must {rule}" if must and subject in named else ""
        if path.name in message:
            return told or f"{argument}: {message}"
        told = told.removeprefix(f"{argument} ") or message
        return f"{argument} {str(path)!r}{' ' if told.startswith('cannot ') else ': '}{told}"

    try:
        yield
    except InputError as error:
        raise error.retold(words) from None
    except ClientError as error:
        raise InputError(words(str(error))) from None
