"""Pages that experiments write whole, in docs/generated: long tables, and the figures with them.

A page has a heading, the command that writes it, and a link to the page that reads it out. Short
tables stand in the pages that people write, between marks (``experiments.tables.replace_block``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = "generated"


@dataclass(frozen=True)
class Page:
    """What stands on a generated page above its tables.

    Attributes
    ----------
    title : str
    command : str
        Words behind ``python -m experiments``, without ``--write``.
    read_in : str
        The page that says what the tables mean, relative to docs.
    figures : mapping of names of files, without suffix, to what they show
        Figures in the same folder.
    """

    title: str
    command: str
    read_in: str
    figures: Mapping[str, str]


def _heatmaps(title: str, command: str, figures: Mapping[str, str] | None = None) -> Page:
    read_in = "experiments/heatmaps-paper.md"
    return Page(title, f"{command} --data FOLDER", read_in, figures or {})


def _replicated(title: str, name: str, figures: Mapping[str, str]) -> Page:
    return Page(title, f"{name} --data FOLDER", "experiments/heatmaps-replications.md", figures)


def _distributed(title: str, item: str, figures: Mapping[str, str] | None = None) -> Page:
    command = f"distributed-{item} --data FOLDER"
    return Page(title, command, "experiments/distributed-paper.md", figures or {})


def _dam(title: str, item: str, read_in: str, figures: Mapping[str, str]) -> Page:
    return Page(title, f"dam-{item} --data FOLDER", f"experiments/{read_in}", figures)


PAGES: Mapping[str, Page] = {
    "attack-power": Page(
        "What attacks see of each release's claim",
        "attack-power",
        "local.md#9-attacks",
        {},
    ),
    "better-default": Page(
        "What is recommended beside what one has without it, by map",
        "better-default --data FOLDER --every 7",
        "recommended.md#what-it-brings-losses-first",
        {},
    ),
    "better-default-drawn": Page(
        "What is recommended beside its rivals, settings drawn at random",
        "better-default-drawn --data FOLDER",
        "recommended.md#what-it-brings-losses-first",
        {},
    ),
    "local-rivals": Page(
        "The recommended local releases beside their rivals at their best",
        "local-rivals --data FOLDER --every 29 --repeats 12",
        "recommended.md#beside-every-local-rival-at-its-best",
        {},
    ),
    **{
        f"{model}-levels": Page(
            f"The recommended {model} release by setting",
            f"levels --data FOLDER --model {model}-levels",
            "experiments/levels.md",
            {},
        )
        for model in ("central", "distributed")
    },
    "level-intervals": Page(
        "How often intervals of levels hold, by setting",
        "level-intervals --data FOLDER",
        "experiments/levels.md#how-often-intervals-hold",
        {},
    ),
    "heatmap-epsilon-sigma-4": _heatmaps(
        "Central heat maps over epsilon, filter width 4",
        "heatmap-epsilon --sigma 4",
        {"heatmap-epsilon": "Four metrics over epsilon, one line a release"},
    ),
    "heatmap-epsilon-sigma-0": _heatmaps(
        "Central heat maps over epsilon, no filter", "heatmap-epsilon --sigma 0"
    ),
    "heatmap-epsilon-sigma-8": _heatmaps(
        "Central heat maps over epsilon, filter width 8", "heatmap-epsilon --sigma 8"
    ),
    "heatmap-users": _heatmaps(
        "Central heat maps over the number of users",
        "heatmap-users",
        {"heatmap-users": "Four metrics over the number of users"},
    ),
    "heatmap-resolution": _heatmaps(
        "Central heat maps over the resolution",
        "heatmap-resolution",
        {"heatmap-resolution": "Four metrics over the resolution"},
    ),
    "heatmap-examples": _heatmaps(
        "Central heat maps side by side",
        "heatmap-examples",
        {"heatmap-examples": "Heat maps of a city under three releases"},
    ),
    "covid": _replicated(
        "Counties with COVID deaths",
        "covid",
        {
            "covid-maps": "Heat maps of counties by sparse EMD at six epsilons",
            "covid-metrics": "Four metrics over epsilon on 16 x 16 cells",
        },
    ),
    "gaze": _replicated("Gaze", "gaze", {"gaze": "Heat maps of gaze on two faces, epsilon 10"}),
    "distributed-table1": _distributed("Distributed heat maps: all systems", "table1"),
    "distributed-table2": Page(
        "Distributed heat maps: many positions a user",
        "distributed-table2 --data FOLDER",
        "experiments/distributed-positions.md",
        {},
    ),
    "distributed-table3": _distributed(
        "Distributed heat maps: what each part contributes", "table3"
    ),
    "distributed-figure5": _distributed(
        "Distributed heat maps: rounds",
        "figure5",
        {
            "distributed-figure5-chicago": "Assaults in Chicago: the original and the maps of "
            "seven rounds, 4 to 5,000 squares"
        },
    ),
    "distributed-figure6": _distributed(
        "Distributed heat maps: other places",
        "figure6",
        {
            "distributed-figure6": "Original beside private maps of Tokyo and Chicago at two "
            "values of c"
        },
    ),
    "distributed-figure7": _distributed(
        "Distributed heat maps: sample size and c",
        "figure7",
        {
            "distributed-figure7": "Error over users at two epsilons, and over c at two numbers "
            "of users"
        },
    ),
    "distributed-figure8": _distributed(
        "Distributed heat maps: the secure sum",
        "figure8",
        {
            "distributed-figure8": "Error over shard size, over the number of survivors that "
            "noise is made for, over bits"
        },
    ),
    "distributed-figure9": _distributed(
        "Distributed heat maps: proportions",
        "figure9",
        {
            "distributed-figure9-chicago": "Chicago: chance of infection, proportion found, "
            "width of its interval"
        },
    ),
    "dam-figure8": _dam(
        "DAM: the radius",
        "figure8",
        "dam-radius.md",
        {
            "dam-figure8": "Error over the radius on six data sets, with the paper's stop and "
            "with ours"
        },
    ),
    "dam-figure9": _dam(
        "DAM beside other mechanisms: over d and over epsilon",
        "figure9",
        "dam-paper.md",
        {
            "dam-figure9-a-d": "d = 2 to 5, epsilon 3.5: error of all mechanisms on six data sets",
            "dam-figure9-e-i": "d = 5 to 20, epsilon 5: error of all mechanisms on six data sets",
            "dam-figure9-j-n": "d = 5, epsilon 0.7 to 3.5: error of all mechanisms on six data "
            "sets",
            "dam-figure9-o-s": "d = 15, epsilon 5 to 9: error of all mechanisms on six data sets",
        },
    ),
    "dam-figure13": _dam(
        "DAM beside other mechanisms: whole cities",
        "figure13",
        "dam-cities.md",
        {
            "dam-figure13": "Error over d and over epsilon on three whole cities, a row a city",
        },
    ),
    "dam-figure14": Page(
        "Trajectories: DAM, LDPTrace and PivotTrace",
        "dam-figure14 --data FOLDER",
        "experiments/trajectories-paper.md",
        {
            "dam-figure14": "W2 over the cells along a side and over epsilon, for walks in two "
            "cities and for taxis"
        },
    ),
    "local-ranges": Page(
        "Range queries of local releases",
        "local-ranges --data FOLDER",
        "experiments/range-queries.md",
        {"local-ranges": "Error of random rectangles by release, for four maps and two grids"},
    ),
    "orderings": Page(
        "The local family: who is nearer", "orderings", "experiments/local-family.md", {}
    ),
    "attacks": Page(
        "The local family: local privacy and error",
        "attacks",
        "experiments/local-family.md",
        {
            "attacks": "Exact W2 over local privacy on Normal and SZipf, a line for each local "
            "release; the two under geo-indistinguishability are dashed and hollow"
        },
    ),
    "fit-check": Page(
        "The check of the fit: false alarms and power",
        "fit-check --data FOLDER --repeats 7 --forged-repeats 3",
        "experiments/fit-check.md",
        {},
    ),
    "supports": Page(
        "Whether a support leaves out people",
        "supports --data FOLDER",
        "experiments/estimators.md#support-prior-windows",
        {},
    ),
    "fit-check-fine": Page(
        "The check of the fit on fine grids",
        "fit-check --data FOLDER --fine --repeats 1 --forged-repeats 1",
        "experiments/fit-check.md#fine-grids",
        {},
    ),
    "forged-reports": Page(
        "Forged reports: how far they move a map, and when they are noticed",
        "forged-reports --data FOLDER",
        "experiments/forged-reports.md",
        {},
    ),
    "coverage": Page(
        "Coverage of intervals of cells",
        "coverage",
        "experiments/estimators.md#intervals-of-cells",
        {},
    ),
}


def generated(docs: Path, file: str) -> Path:
    """Return where a generated file lies below ``docs``, whose folder is made if need be."""
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    return folder / file


def head(name: str) -> str:
    """Return how a generated page begins: heading, command, who reads it, figures."""
    page = PAGES[name]
    lines = [
        f"# {page.title}",
        f"`python -m experiments {page.command} --write` writes this page; "
        f"[{Path(page.read_in.partition('#')[0]).name}](../{page.read_in}) says what it means.",
        *(f"![{text}]({file}.png)" for file, text in page.figures.items()),
    ]
    return "\n\n".join(lines) + "\n"


def write_page(docs: Path, name: str, text: str) -> None:
    """Write a generated page of the text, Markdown, below ``docs``."""
    generated(docs, f"{name}.md").write_text(f"{head(name)}\n{text}\n", encoding="utf-8")
