"""What servers, audits and measurements share with devices, under stable names.

An app needs none of this. Code on the other side builds on it, so that there is one rule, one exact
number and one way to draw on both sides:

- rules of arguments: ``whole_number``, ``finite_number``, ``exact_epsilon``, ``written_epsilon``,
  ``micro_epsilons``, ``is_number``, ``path_text``, ``shown``, and the limits that they hold to;
- entropy: ``Entropy``, ``system_entropy``, ``uniform_below``, ``random_bytes``;
- exact numbers with ``BITS`` fractional bits: ``ONE``, ``exp_below``, ``root_below``;
- tables: ``MECHANISMS``, ``whole_weights``, ``optimal_radius``, ``optimal_squared_radius``,
  ``verify_table``, ``Sampler``;
- the ground: ``TURN``, ``UNIT``, ``PLANE_LIMIT``, ``metres_per_degree``;
- texts: ``REPORT_SCHEMA``, ``LONGEST_REPORT``, ``character_fault``, ``MAX_WINDOWS``.

The modules that these come from may change; these names do not.
"""

from client_sdk.entropy import Entropy, random_bytes
from client_sdk.entropy import below as uniform_below
from client_sdk.entropy import system as system_entropy
from client_sdk.exact import BITS, ONE, exp_below, root_below
from client_sdk.grid import PLANE_LIMIT, TURN, UNIT, metres_per_degree
from client_sdk.mechanisms import MECHANISMS, whole_weights
from client_sdk.report import LONGEST as LONGEST_REPORT
from client_sdk.report import SCHEMA as REPORT_SCHEMA
from client_sdk.sampling import Sampler
from client_sdk.series import MAX_WINDOWS
from client_sdk.shrunken import optimal_radius, optimal_squared_radius
from client_sdk.validate import (
    MAX_CELLS,
    MAX_EPSILON,
    MICRO,
    MIN_EPSILON,
    WEIGHT_LIMIT,
    exact_epsilon,
    finite_number,
    is_number,
    micro_epsilons,
    path_text,
    shown,
    whole_number,
    written_epsilon,
)
from client_sdk.verify import verify_table
from client_sdk.visible_text import fault as character_fault

__all__ = [
    "BITS",
    "LONGEST_REPORT",
    "MAX_CELLS",
    "MAX_EPSILON",
    "MAX_WINDOWS",
    "MECHANISMS",
    "MICRO",
    "MIN_EPSILON",
    "ONE",
    "PLANE_LIMIT",
    "REPORT_SCHEMA",
    "TURN",
    "UNIT",
    "WEIGHT_LIMIT",
    "Entropy",
    "Sampler",
    "character_fault",
    "exact_epsilon",
    "exp_below",
    "finite_number",
    "is_number",
    "metres_per_degree",
    "micro_epsilons",
    "optimal_radius",
    "optimal_squared_radius",
    "path_text",
    "random_bytes",
    "root_below",
    "shown",
    "system_entropy",
    "uniform_below",
    "verify_table",
    "whole_number",
    "whole_weights",
    "written_epsilon",
]
