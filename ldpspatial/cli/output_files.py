"""One rule for files that commands write: none is written over, unless the user says so.

With ``--overwrite`` a file is replaced that the same command may have written. Documents and
back-ups never are: others rely on them as they are.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ldpspatial.errors import InputError


def check_output(
    option: str,
    path: Path,
    endings: tuple[str, ...],
    overwrite: bool,
    inputs: Iterable[str | os.PathLike[str]] = (),
    earlier: tuple[str, Callable[[Path], bool]] | None = None,
) -> None:
    """Refuse, before any work is done, what could not or must not be written after it.

    Parameters
    ----------
    option : str
        What names the file, for the error.
    path : path
    endings : tuple of str
        The file's name has one of them.
    overwrite : bool
        Whether a file that is there may be replaced.
    inputs : iterable of path
        What the command reads, and other files that it must leave alone.
    earlier : (str, callable of path), optional
        What may be replaced, in words, and whether a file is such a one; without it any file of
        the right ending.

    Raises
    ------
    InputError
    """
    if path.suffix.lower() not in endings:
        raise InputError(f"{option} must end in {' or '.join(endings)}, got {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option} must lie in a folder that exists, got {str(path)!r}")
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise InputError(f"{option} must not replace an input or a result, got {str(path)!r}")
    if not path.exists():
        return
    if not overwrite:
        raise InputError(
            f"{option} must be a new file, got {str(path)!r} (--overwrite replaces it)"
        )
    if earlier is not None and not earlier[1](path):
        raise InputError(f"{option} must be new, or {earlier[0]} to be replaced, got {str(path)!r}")


def check_new(out: Path) -> None:
    """Refuse to write over a document."""
    if out.exists():
        raise InputError(f"out must be a new file, got {out}: a collection never changes")
