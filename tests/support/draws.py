"""What a test lets a ledger draw in place of a report."""

from collections.abc import Callable


def draw(report_id: str) -> Callable[[], tuple[str, str]]:
    """Return what draws a report of this id."""
    return lambda: (report_id, f"report {report_id}")


def never() -> tuple[str, str]:
    """Fail: a refused report must not be drawn."""
    raise AssertionError("drawn although refused")
