"""Reports of a series counted window by window, out of core.

A report names the collection of its window. Files are read once: what they hold is copied, window
by window, to temporary files, some 20 bytes a report, and each copy is counted as the reports of
one collection are (:mod:`ldpspatial.collecting.counting`).
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from client_sdk import Series
from ldpspatial.collecting.counting import (
    MALFORMED,
    ReportCounts,
    refuse_bad,
    tallied,
)
from ldpspatial.collecting.opened_reports import Columns, Database, opened_reports
from ldpspatial.collecting.partial_counts import (
    add_counts,
    collection_of,
    holds_counts,
    read_counts,
    report_paths,
)
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, one_of

Path_ = str | os.PathLike[str]

NO_WINDOW = 0  # of reports that name no window of the series
ASIDE = -1  # of reports of windows that were not asked for
PARTED = """
    SELECT reports.* REPLACE (coalesce(collection, '') AS collection), coalesce(number, 0) AS part
    FROM reports LEFT JOIN series_windows ON collection = digest
    WHERE number IS NULL OR number > 0
"""


@dataclass(frozen=True)
class WindowCounts:
    """Reports of a series by window and output cell.

    Attributes
    ----------
    windows : mapping of int to ReportCounts
        By window, counted from 1 and in the order of time, each that a report names; those whose
        reports are all bad count none.
    rejected : dict of str to int
        Reports of no window that were left out, by reason.
    """

    windows: Mapping[int, ReportCounts]
    rejected: dict[str, int]

    @property
    def n(self) -> int:
        """Number of reports counted."""
        return sum(counted.n for counted in self.windows.values())


def count_windows(
    paths: Sequence[Path_],
    series: Series,
    on_invalid: str = "error",
    windows: range | None = None,
) -> WindowCounts:
    r"""Count the reports of each window of a series, each once.

    Parameters
    ----------
    paths : list of paths
        Files of reports, of one kind and as ``count_reports`` takes them, with the column
        ``collection``; and files of counts (.json) of windows, as ``write_counts`` writes them.
    series : client_sdk.Series
    on_invalid : {"error", "drop"}
        As of ``count_reports``. Reports of another collection are those that name none of the
        series.
    windows : range, optional
        Those to count; reports of other windows of the series are left aside. All by default.

    Raises
    ------
    InputError
        A file breaks a rule, there is no such window, or no good report of one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from client_sdk import Grid
    >>> week = Series.create("a week", Grid.plane(0, 0, 8, 5), 3.5, first_start=1_800_000_000,
    ...                      window_seconds=86_400, windows=7)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "reports.csv"
    >>> days = [week.collection(day).digest for day in (2, 5, 5)]
    >>> _ = file.write_text("row,col,collection\n" + "".join(f"2,3,{day}\n" for day in days))
    >>> {day: counted.n for day, counted in count_windows([file], week).windows.items()}
    {2: 1, 5: 2}
    """
    instance("series", series, Series)
    one_of("on_invalid", on_invalid, ("error", "drop"))
    asked = _asked(windows, series)
    files = report_paths(paths)
    numbers = {series.collection(k).digest: k for k in range(1, series.windows + 1)}
    found: dict[int, list[ReportCounts]] = {}
    for file in filter(holds_counts, files):
        window = numbers.get(collection_of(file))
        if window is None:
            raise InputError(
                f"counts must be those of a window of series {series.digest[:12]}..., "
                f"{file} holds those of another collection"
            )
        if window in asked:
            found.setdefault(window, []).append(read_counts(file, series.collection(window)))
    reports = [file for file in files if not holds_counts(file)]
    rejected: dict[str, int] = {}
    if reports or not files:
        counted, rejected = _counted(reports, series, numbers, asked, on_invalid)
        for window, each in counted.items():
            found.setdefault(window, []).append(each)
    together = {window: _added(found[window]) for window in sorted(found)}
    result = WindowCounts(together, rejected)
    if not result.n:
        raise InputError("reports must hold at least one good report of a window, got none")
    return result


def _counted(
    files: Sequence[Path],
    series: Series,
    numbers: Mapping[str, int],
    asked: range,
    on_invalid: str,
) -> tuple[dict[int, ReportCounts], dict[str, int]]:
    """Return what files of reports hold of each window, and what of none, by reason."""
    with opened_reports(files) as (database, columns, bad_lines, spill):
        found: dict[int, ReportCounts] = {}
        for window, folder in _parted(database, columns, numbers, asked, spill).items():
            _view(database, folder)
            # A report of no window is foreign to the first as to all others.
            collection = series.collection(max(window, 1))
            found[window] = tallied(database, columns, collection, folder).counted("id" in columns)
    of_none = found.pop(NO_WINDOW, None)
    rejected = {MALFORMED: bad_lines.number, **(of_none.rejected if of_none else {})}
    rejected = {reason: n for reason, n in rejected.items() if n}
    if on_invalid == "error":
        every = Counter(rejected)
        for each in found.values():
            every.update(each.rejected)
        refuse_bad(every, bad_lines)
    return found, rejected


def _asked(windows: object, series: Series) -> range:
    if windows is None:
        return range(1, series.windows + 1)
    chosen = instance("windows", windows, range)
    if len(chosen) == 0 or min(chosen) < 1 or max(chosen) > series.windows:
        raise InputError(f"windows must lie within 1 to {series.windows}, got {_told(chosen)}")
    return chosen


def _told(windows: range) -> str:
    """Return the windows of a range as an error tells them."""
    return f"{windows[0]} to {windows[-1]}" if windows else "none"


def _parted(
    database: Database, columns: Columns, numbers: Mapping[str, int], asked: range, spill: Path
) -> dict[int, Path]:
    """Copy the reports to a folder for each window, and one for those of none."""
    if "collection" not in columns:
        raise InputError(
            "reports of a series must have the column collection, which names their windows"
        )
    known = pa.table(
        {
            "digest": list(numbers),
            "number": [k if k in asked else ASIDE for k in numbers.values()],
        }
    )
    database.register("series_windows", known)
    target = spill / "windows"
    database.sql(PARTED).create_view("parted")
    path = str(target).replace("'", "''")
    database.execute(f"COPY parted TO '{path}' (FORMAT parquet, PARTITION_BY (part))")
    folders = {int(folder.name.partition("=")[2]): folder for folder in target.glob("part=*")}
    return dict(sorted(folders.items()))


def _view(database: Database, folder: Path) -> None:
    """Make the files of a folder the view ``reports``."""
    files = [str(file) for file in sorted(folder.glob("*.parquet"))]
    database.read_parquet(files, hive_partitioning=False).create_view("reports", replace=True)


def _added(parts: Sequence[ReportCounts]) -> ReportCounts:
    """Return the sum; a window of which all reports are bad counts none."""
    return parts[0] if len(parts) == 1 else add_counts(parts)
