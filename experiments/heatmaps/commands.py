"""All commands of this folder, in the order of the papers."""

from experiments.heatmaps.covid import covid
from experiments.heatmaps.epsilon import heatmap_epsilon
from experiments.heatmaps.examples import heatmap_examples
from experiments.heatmaps.gaze import gaze_maps
from experiments.heatmaps.resolution import heatmap_resolution
from experiments.heatmaps.users import heatmap_users

COMMANDS = (
    heatmap_epsilon,
    heatmap_users,
    heatmap_resolution,
    heatmap_examples,
    covid,
    gaze_maps,
)

__all__ = ["COMMANDS"]
