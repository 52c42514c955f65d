"""The reports of a closed collection as Parquet, for whoever counts them elsewhere."""

from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from client_sdk import Collection
from ldpspatial.collecting.records import ID_BYTES, OutputDomain
from ldpspatial.collecting.report_files import REPORTS
from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing
from ldpspatial.service.closing import stored_reports
from ldpspatial.service.store import Store
from ldpspatial.validate import file_path


async def write_parquet(store: Store, digest: str, path: str | Path) -> int:
    """Write the different reports of a closed collection; return how many they are.

    Those that conflict are among them: ``count_reports`` leaves them out as the store does, with
    ``on_invalid="drop"``.

    Raises
    ------
    InputError
        The store has no such collection, it is open or was released, or the file cannot be written.
    """
    file = file_path("path", path)
    if file.suffix.lower() != ".parquet":
        raise InputError(f"path must end in .parquet, got {file.name!r}")
    with replacing(file, mode=0o600) as stream:  # as the store itself
        return await write_reports(store, digest, stream)


async def write_reports(store: Store, digest: str, stream: IO[bytes]) -> int:
    """Write them to a stream; arguments, result and errors are those of :func:`write_parquet`."""
    domain = OutputDomain(Collection.from_json((await store.held(digest)).document))
    number = 0
    with pq.ParquetWriter(stream, REPORTS, compression="zstd") as writer:
        async for records in stored_reports(store, digest):
            n = len(records)
            ids = pa.py_buffer(records["id"].tobytes())
            rows, cols = domain.cells(records["place"])
            columns = [
                pa.Array.from_buffers(pa.binary(ID_BYTES), n, [None, ids]),
                pa.array(rows),
                pa.array(cols),
                pa.repeat(digest, n).dictionary_encode(),
            ]
            writer.write_batch(pa.record_batch(columns, schema=REPORTS))
            number += n
    return number
