"""Small files for tests."""

import gzip
from pathlib import Path


def write_file(folder: Path, name: str, content: str | bytes) -> Path:
    """Write text (as UTF-8) or bytes, gzipped where the name ends in .gz."""
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path
