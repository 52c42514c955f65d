"""Whether a folder outlives the process, on platforms where it may not."""

import importlib
import os
import sys
from pathlib import Path

from client_sdk.errors import LedgerError

_NEEDED = (
    "the files of a page are its memory and are gone after a reload, and with them the account: "
    "mount a file system that lasts (IDBFS, OPFS or NODEFS), save it before a report is sent "
    "(syncfs), let one page at a time use it (Web Locks), and pass lasting=True with a folder on "
    "it; nothing was installed"
)


def check_lasting(folder: Path, lasting: bool) -> None:
    """Refuse a folder of Emscripten (Pyodide) unless the app names one that lasts.

    Raises
    ------
    LedgerError
        The app did not say that the folder lasts, or it lies in the page's memory all the same.
    """
    if sys.platform != "emscripten":
        return
    if not lasting or _is_memory(folder):
        raise LedgerError(f"ledger in {folder}: {_NEEDED}")


def _is_memory(folder: Path) -> bool:
    """Tell whether Pyodide's file system says that the folder, or its parent, is memory."""
    try:
        system = importlib.import_module("pyodide_js").FS
    except ImportError:  # another Emscripten: the app's word has to do
        return False
    folder = Path(os.path.realpath(folder))  # where a link leads: lookupPath stops at the link
    while not folder.exists():
        folder = folder.parent
    return bool(system.lookupPath(str(folder)).node.mount.type == system.filesystems.MEMFS)
