"""Counting reports the slow way: everything in memory, line by line, each id looked up."""

from collections import Counter, defaultdict

from client_sdk import Collection, Report

Counts = Counter[tuple[int, int]]  # by row and col


def read_lines(data: bytes) -> tuple[list[Report], int]:
    """Return the reports of JSON lines, and how many lines are malformed."""
    reports, malformed = [], 0
    for line in data.split(b"\n"):
        text = line[:-1] if line.endswith(b"\r") else line
        if len(text) <= 1024 and all(byte in b" \t\r" for byte in text):
            continue
        try:
            reports.append(Report.from_json(text.decode("utf-8")))
        except ValueError:  # of the report or of UTF-8
            malformed += 1
    return reports, malformed


def count(reports: list[Report], collection: Collection) -> tuple[Counts, dict[str, int], int]:
    """Return the counts, the rejected by a word of the reason, and the number of repeats."""
    cells = set(collection.table.output_cells())
    by_id = defaultdict(list)
    for report in reports:
        is_own = report.collection == collection.digest
        is_outside = is_own and (report.row, report.col) not in cells
        by_id[report.id, report.collection, is_outside].append(report)
    counts: Counts = Counter()
    rejected: Counter[str] = Counter()
    repeated = 0
    for (_, _, is_outside), same_id in by_id.items():
        different = set(same_id)
        repeated += len(same_id) - len(different)
        if is_outside:
            rejected["cell"] += len(different)
            continue
        if len(different) > 1:
            rejected["id"] += len(different)
            continue
        (report,) = different
        if report.collection != collection.digest:
            rejected["collection"] += 1
        else:
            counts[report.row, report.col] += 1
    return counts, dict(rejected), repeated
