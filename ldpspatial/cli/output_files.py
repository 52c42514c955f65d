"""One rule for files that commands write: none is written over, unless the user says so.

With ``--overwrite`` a file is replaced that the same command may have written. Documents and
back-ups never are: others rely on them as they are.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ldpspatial.cli.output import RESULTS, SERIES_RESULTS, WINDOW_FOLDER
from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.files.unfinished import unfinished_folder


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
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{option} must name a file, got {str(path)!r}, which is {what}")
    if not overwrite:
        raise InputError(
            f"{option} must be a new file, got {str(path)!r} (--overwrite replaces it)"
        )
    if earlier is not None and not earlier[1](path):
        raise InputError(f"{option} must be new, or {earlier[0]} to be replaced, got {str(path)!r}")


def check_kept(option: str, written: Iterable[Path], inputs: Mapping[str, Path | None]) -> None:
    """Refuse inputs, by the names of their arguments, that a folder of results would replace."""
    places = set(map(os.path.realpath, written))
    for name, path in inputs.items():
        if path is not None and os.path.realpath(path) in places:
            raise InputError(
                f"{name} must not be a file that the results in {option} replace, got {str(path)!r}"
            )


def check_new(out: Path, field: str = "out") -> None:
    """Refuse to write over a document, or over what was written beside it."""
    if out.exists():
        raise InputError(f"{field} must be a new file, got {out}: documents never change")


@contextmanager
def placed(option: str, path: Path, overwrite: bool = False) -> Iterator[Path]:
    """Yield where to write a file, which gets its name when the block ends without an error.

    Unless it may be replaced, it is written into a hidden folder beside its name, and takes that
    only if no other command has taken it meanwhile.

    Raises
    ------
    InputError
        The name is taken, or its folder cannot be written.
    """
    if overwrite:
        yield path  # whatever writes a file replaces one in a single step
        return
    target = Path(os.path.realpath(path))  # a link is followed, not replaced
    with ExitStack() as stack:
        with _refusals(option, path):
            folder = stack.enter_context(unfinished_folder(target.parent))
        yield folder / target.name
        with _refusals(option, path):
            _name(folder / target.name, target)


@contextmanager
def _refusals(option: str, path: Path) -> Iterator[None]:
    """Say what is wrong with the name of a file, or with its folder."""
    try:
        yield
    except FileExistsError:
        raise InputError(
            f"{option} must be a new file, got {str(path)!r}, which another command has written "
            "meanwhile"
        ) from None
    except OSError as error:
        raise InputError(
            f"{option} must lie in a folder that can be written, got {str(path)!r}: "
            f"{error.strerror}"
        ) from None


def _name(file: Path, target: Path) -> None:
    """Rename a file, but replace none."""
    try:
        os.link(file, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: an empty file takes the name
        target.open("xb").close()
        file.replace(target)


def write_document(out: Path, text: str) -> None:
    """Write a new document; one that another command has written meanwhile stays."""
    with placed("out", out) as file, replacing(file) as stream:
        stream.write(text.encode())


def results_beside(file: Path) -> list[Path]:
    """Return the results among which a file lies, or that lie in a folder.

    These are the files of one command, whether all of them are there or not; of a window, also
    those of its series and of the other windows. There are none where no summary is.
    """
    folder = Path(os.path.realpath(file))
    if not folder.is_dir():
        folder = folder.parent
    kinds: dict[Path, tuple[str, ...]] = {folder: RESULTS}
    if WINDOW_FOLDER.fullmatch(folder.name):
        kinds[folder.parent] = SERIES_RESULTS
        others = (each for each in folder.parent.iterdir() if WINDOW_FOLDER.fullmatch(each.name))
        kinds |= dict.fromkeys((each for each in others if each != folder), RESULTS)
    return [
        place / name
        for place, names in kinds.items()
        if (place / names[-1]).exists()
        for name in names
    ]
