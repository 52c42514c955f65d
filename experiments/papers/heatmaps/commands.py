"""All commands of this folder, in the order of the papers."""

from experiments.papers.heatmaps.covid import covid
from experiments.papers.heatmaps.epsilon import heatmap_epsilon
from experiments.papers.heatmaps.examples import heatmap_examples
from experiments.papers.heatmaps.gaze import gaze_maps
from experiments.papers.heatmaps.resolution import heatmap_resolution
from experiments.papers.heatmaps.users import heatmap_users

COMMANDS = (
    heatmap_epsilon,
    heatmap_users,
    heatmap_resolution,
    heatmap_examples,
    covid,
    gaze_maps,
)

__all__ = ["COMMANDS"]
