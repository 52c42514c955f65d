"""What the screen says of a result: whether counts fit, what was known before, whom to trust."""

from typing import Any

from ldpspatial.estimation.field.posterior import CONVERGED, MAP, MODE


def verdicts(summary: dict[str, Any]) -> dict[str, str]:
    """Return lines on a map by its summary: check, support and prior, samples, forged reports."""
    return {
        "check": fit_verdict(summary),
        **known_before(summary),
        **samples_verdict(summary),
        "if forged": _forged(summary),
    }


def fit_verdict(summary: dict[str, Any]) -> str:
    """Return one line on whether the reports fit the collection's channel."""
    fit = summary["fit"]
    p = f"p = {fit['p_value']:.2g}"
    if fit["plausible"]:
        return f"the counts fit this collection ({p})"
    return (
        f"THE COUNTS DO NOT FIT THIS COLLECTION ({p}): other parameters on the devices, "
        f"unrandomised, forged or mixed reports{_likeness(fit)}"
    )


def known_before(summary: dict[str, Any]) -> dict[str, str]:
    """Return lines on the support and the prior that a field was given, for what is shown of it."""
    found, size = summary["estimator"], summary["cells"] ** 2
    told = {}
    if found.get("possible", size) < size:
        told["support"] = f"people can be in {found['possible']} of {size} cells"
    if found.get("exponent", 0.0) != 0:
        told["prior"] = f"the public map to the power {found['exponent']:.2f} (0: it tells nothing)"
    return told


def samples_verdict(summary: dict[str, Any]) -> dict[str, str]:
    """Return a line where a field is not to be trusted, for what is shown of a result."""
    verdict = summary["estimator"].get("verdict", CONVERGED)
    if verdict == CONVERGED:
        return {}
    if verdict == MAP:
        return {"samples": "MAP: the map alone, whose chains are not judged; no samples"}
    why = "chains did not move" if verdict == MODE else "chains did not agree"
    if summary["estimator"].get("outside", 0) > 0:
        why = "the support leaves out people"
    return {"samples": f"{verdict.upper()}: {why}; intervals may be too narrow"}


def _likeness(fit: dict[str, Any]) -> str:
    """Return what counts that do not fit look most like, and how many reports would be of it."""
    if fit.get("interval") is None:  # files of before have no such entry
        return ""
    low, high = fit["interval"]
    return f"; most like {fit['misfit']}, {low:.1%} to {high:.1%} of all"


def _forged(summary: dict[str, Any]) -> str:
    """Return one line on how far forged reports can move the map."""
    moved = [
        f"{each['share']:.0%} up to {float(format(each['w2_cells'], '.2g')):g} cells"
        for each in summary["forged"]
    ]
    return f"reports move the map: {', '.join(moved)}"
