"""One command for every measurement."""

import click

from experiments.authors.command import authors
from experiments.authors.dawa_partition import dawa_partition
from experiments.benchmarks import benchmarks
from experiments.end_to_end.command import end_to_end
from experiments.papers.dam.commands import COMMANDS as DAM_PAPER
from experiments.papers.distributed.commands import COMMANDS as DISTRIBUTED
from experiments.papers.heatmaps.commands import COMMANDS as HEATMAPS
from experiments.papers.trajectories.commands import COMMANDS as TRAJECTORIES
from experiments.rounds.command import play_rounds
from experiments.studies.accuracy import accuracy
from experiments.studies.asked_once import asked_once
from experiments.studies.attack_power import attack_power
from experiments.studies.attacks import attacks
from experiments.studies.better_default import better_default
from experiments.studies.better_default_drawn import better_default_drawn
from experiments.studies.campaigns import campaigns
from experiments.studies.city_intervals import city_intervals
from experiments.studies.claims import claims
from experiments.studies.cohorts import cohorts
from experiments.studies.coverage import coverage
from experiments.studies.disjoint_cohorts import disjoint_cohorts
from experiments.studies.fit_check import fit_check
from experiments.studies.flagship import flagship
from experiments.studies.forged_reports import forged_reports
from experiments.studies.forgery_bound import forgery_bound
from experiments.studies.forgery_cities import forgery_cities
from experiments.studies.ledger_attacks import ledger_attacks
from experiments.studies.level_intervals import level_intervals_study
from experiments.studies.levels import levels
from experiments.studies.local_ranges import local_ranges
from experiments.studies.local_rivals import local_rivals
from experiments.studies.orderings import orderings
from experiments.studies.plan_figure import plan_figure
from experiments.studies.public_weights import public_weights
from experiments.studies.robust_maps import robust_maps
from experiments.studies.round_costs import round_costs
from experiments.studies.same_numbers import same_numbers
from experiments.studies.secure_aggregation import secure_aggregation
from experiments.studies.series import series
from experiments.studies.still_device import still_device
from experiments.studies.stopping import stopping
from experiments.studies.supports import supports
from experiments.studies.two_servers import two_servers
from experiments.studies.window_changes import window_changes


@click.group()
def main() -> None:
    """Run a measurement that the docs quote."""


OWN = (
    accuracy,
    asked_once,
    attack_power,
    attacks,
    authors,
    benchmarks,
    better_default,
    better_default_drawn,
    campaigns,
    city_intervals,
    claims,
    cohorts,
    coverage,
    dawa_partition,
    disjoint_cohorts,
    end_to_end,
    fit_check,
    forged_reports,
    forgery_bound,
    forgery_cities,
    ledger_attacks,
    level_intervals_study,
    levels,
    local_rivals,
    orderings,
    plan_figure,
    play_rounds,
    public_weights,
    robust_maps,
    same_numbers,
    round_costs,
    secure_aggregation,
    series,
    still_device,
    stopping,
    two_servers,
    supports,
    window_changes,
)
for command in (*OWN, flagship, *HEATMAPS, *DISTRIBUTED, *DAM_PAPER, *TRAJECTORIES, local_ranges):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="python -m experiments")
