"""Figure 8: DAM's error over the radius of its disk, d = 15, epsilon 3.5."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from client_sdk.shared import optimal_radius
from experiments.means import mean_and_half_width, shown
from experiments.pairs import verdict
from experiments.papers.dam.claims import counts, judged_least, noted
from experiments.papers.dam.options import users_option
from experiments.papers.dam.plays import Errors, play
from experiments.papers.dam.settings import Setting, data_sets
from experiments.setup import Setup, experiment
from experiments.tables import markdown
from ldpspatial import EM
from ldpspatial.estimation import five_point
from ldpspatial.release.local import Dam
from ldpspatial.release.release import Release

THIRDS = (1, 2, 3, 4, 5)  # of the best radius
SETTING = Setting(15, 3.5)
# The authors' program for this figure smooths between steps with k = 1/4 (AlterParameterBRun.java,
# Constant.java); that for Figure 9 does not.
RULES: Mapping[str, str | EM] = {
    "the paper's stop": "published",
    "the same, smoothed": EM("published", five_point(0.25)),
    "our stop": "scaled",
}


@experiment("dam-figure8", repeats=10)
@users_option
def figure8(setup: Setup, users: int) -> None:
    """Exact W2 of DAM at five radii, on six data sets (Du et al., Figure 8)."""
    errors = play(setup, data_sets(setup.data, users), [SETTING], _releases)
    setup.publish(f"{_table(errors)}\n\n{verdicts(errors)}", {"": _draw(errors)}, {})


def radii(setting: Setting) -> list[int]:
    """Return the radii: the best one, rounded down to cells, times thirds."""
    best = optimal_radius(setting.epsilon, setting.cells)
    return [best * thirds // 3 for thirds in THIRDS]


def _label(text: str, radius: int) -> str:
    return f"{text}, b = {radius}"


def _releases(setting: Setting) -> dict[str, Release]:
    return {
        _label(text, radius): Dam(rule=rule, radius=radius)  # type: ignore[arg-type]
        for text, rule in RULES.items()
        for radius in radii(setting)
    }


def _table(errors: Errors) -> str:
    lines = [
        [name, text, *(shown(errors.of(name, _label(text, b), SETTING), 3)
                       for b in radii(SETTING))]
        for name in errors.names
        for text in RULES
    ]  # fmt: skip
    return markdown(["data", "EM", *(f"b = {b}" for b in radii(SETTING))], lines)


def verdicts(errors: Errors) -> str:
    """Return where the least mean is, and how the radius of theory compares with each other one."""
    tried = radii(SETTING)
    best = tried[THIRDS.index(3)]
    lines = []
    for name in errors.names:
        for text in RULES:
            found = {b: errors.of(name, _label(text, b), SETTING) for b in tried}
            least = min(tried, key=lambda b, found=found: found[b].mean())  # type: ignore[misc]
            beside = {b: verdict(found[best], found[b]) for b in tried if b != best}
            below = [b for b, said in beside.items() if said == "higher"]
            above = [b for b, said in beside.items() if said == "lower"]
            tally: Counter[str] = Counter(beside.values())
            lines.append([name, text, least, _listed(below), _listed(above),
                          f"{judged_least(tally)}: {counts(tally)}"])  # fmt: skip
    header = ["data", "EM", "least at b =", f"below b = {best} (95 %)", f"above b = {best}",
              "least at the best radius"]  # fmt: skip
    return noted(markdown(header, lines), errors)


def _listed(radii: list[int]) -> str:
    return ", ".join(map(str, radii)) or "none"


def _draw(errors: Errors) -> Figure:
    figure = Figure(figsize=(10.8, 6.0), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True).ravel()
    for axes in panels[len(errors.names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, errors.names, strict=False):
        for text in RULES:
            found = [errors.of(name, _label(text, b), SETTING) for b in radii(SETTING)]
            mean, half = np.transpose([mean_and_half_width(each) for each in found])
            axes.errorbar(radii(SETTING), mean, np.nan_to_num(half), marker="o", markersize=4,
                          capsize=3, label=text)  # fmt: skip
        axes.set_title(f"{name}, d = {SETTING.cells}, eps {SETTING.epsilon:g}", fontsize=9)
        axes.set(xlabel="radius b, cells", ylabel="exact W2, cells", xticks=radii(SETTING))
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
