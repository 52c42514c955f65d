"""Where observers looked at images: the saliency experiment of Google's blog post (2023)."""

from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from experiments.papers.heatmaps.data import WEIGHTS, Fixations, gaze
from experiments.papers.heatmaps.figures import map_panels
from experiments.papers.heatmaps.plays import OURS, SIGMAS_A_SIDE, Conduct, conducted, with_tops
from experiments.papers.heatmaps.summary import differences_table, means_table
from ldpspatial.metrics import heat_map

EPSILONS = (1.0, 5.0, 10.0, 20.0)
SHOWN = ("laplace", OURS)
SHOWN_EPSILON = 10.0  # as in the blog post
SHOWN_IMAGES = 2
RELEASES = with_tops(0.1, 1)


@click.command("gaze")
@conducted("gaze", repeats=1)
@click.option(
    "--images",
    type=click.IntRange(1),
    default=38,
    show_default=True,
    help="Images, drawn from all.",
)
@click.option(
    "--pixels", type=click.IntRange(1), default=6, show_default=True, help="Side of a cell."
)
@click.option("--weight", type=click.Choice(WEIGHTS), default=WEIGHTS[0], show_default=True,
              help="What a look weighs: its time, or every fixation the same.")  # fmt: skip
def gaze_maps(data: Path, conduct: Conduct, images: int, pixels: int, weight: str) -> None:
    """Heat maps of gaze on images (blog post "Differentially private heatmaps", Google, 2023).

    A user is an observer of one image, and a map is not square. 20 observers of faces (UNISS-FGD)
    stand in for the 50 and more of SALICON, which is not to be had. The claim is for one image:
    who looked at k images of which maps are published spends k times epsilon. Intervals are over
    images.
    """
    fixations = gaze(data)
    every = np.unique(fixations.image)
    rng = np.random.default_rng(conduct.seed)
    chosen = np.sort(rng.choice(every, size=min(images, len(every)), replace=False))
    maps = {f"image {image:03}": fixations.on(image, pixels, weight) for image in chosen}
    rows, columns = next(iter(maps.values())).shape
    sigma = rows / SIGMAS_A_SIDE
    table = conduct.play(maps, RELEASES, EPSILONS, sigma=sigma, kept=f"{weight}-{pixels}-pixels")
    observers = sorted({len(people) for people in maps.values()})
    text = "\n\n".join(
        (
            f"{len(maps)} images of {' or '.join(map(str, observers))} observers, "
            f"{rows} x {columns} cells of {pixels} x {pixels} pixels, "
            f"sigma = 1/{SIGMAS_A_SIDE} of the height; "
            "mean and 95 % interval over images:",
            means_table(table, "epsilon", "data"),
            "Paired differences by image (* sparse-emd is better, × it is worse, each at 95 %):",
            differences_table(table, "epsilon", "data"),
        )
    )
    shown = _maps(fixations, chosen[:SHOWN_IMAGES], pixels, weight, rng)
    figure = map_panels(shown, ["original", *SHOWN], 1.8)
    conduct.report("gaze", text, table, {"gaze": figure})


def _maps(
    fixations: Fixations,
    images: NDArray[np.int64],
    pixels: int,
    weight: str,
    rng: np.random.Generator,
) -> dict[str, list[NDArray[np.float64]]]:
    maps = {}
    for image in images.tolist():
        people = fixations.on(image, pixels, weight)
        runs = [RELEASES[name].release(people, SHOWN_EPSILON, rng).density for name in SHOWN]
        maps[f"image {image}"] = [
            heat_map(density, people.shape[0] / SIGMAS_A_SIDE)
            for density in (people.density, *runs)
        ]
    return maps
