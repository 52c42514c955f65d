"""Files that are there in full or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from ldpspatial.errors import InputError
from ldpspatial.validate import file_path


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path`` when the block ends without an error.

    Until then a file that was there stays as it was. The content goes to a hidden file beside
    the target, on the same file system, so that the renaming is one step; an error removes it,
    and a process that is killed leaves only it behind. A link is followed, not replaced.

    Parameters
    ----------
    path : path or str
    mode : int
        Who may read and write the file from its first byte on, less what the umask takes away.

    Raises
    ------
    InputError
        ``path`` is a folder or a device, or its folder is missing or cannot be written.
    """
    target = file_path("path", path).resolve()
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "no regular file"
        raise InputError(f"path must name a file, got {str(path)!r}, which is {what}")
    # Not tempfile: its files can be read by their owner only, and so could the result.
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        stream = open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
    except OSError as error:
        raise InputError(
            f"path must lie in a folder that can be written, got {str(path)!r}: {error.strerror}"
        ) from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # or the new name may outlive a power cut, and its bytes not
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
