"""The Bayes attacker on a device that stays, by full enumeration in fractions: the obvious twin."""

from fractions import Fraction
from itertools import product

# Whole weights are rounded down, so cells whose products are equal by the formulas may differ in
# the last of some 15 digits. Which of them is guessed makes no difference to how often it is right.
TIED = Fraction(1, 10**9)
Cell = tuple[int, int]
Weights = dict[Cell, int]


def likelihoods(
    weights: Weights, base: int, total: int, d: int, seen: tuple[Cell, ...]
) -> dict[Cell, Fraction]:
    """Return the exact probability of these reports under every cell of the square."""
    found = {}
    for cell in product(range(d), repeat=2):
        chance = Fraction(1)
        for row, col in seen:
            chance *= Fraction(weights.get((row - cell[0], col - cell[1]), base), total)
        found[cell] = chance
    return found


def attack(likelihood: dict[Cell, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the posteriors of the guess and of its neighbourhood, averaged over tied guesses."""
    top, mass = max(likelihood.values()), sum(likelihood.values())
    tied = [cell for cell, chance in likelihood.items() if chance >= top * (1 - TIED)]
    near = sum(
        chance
        for guess in tied
        for cell, chance in likelihood.items()
        if max(abs(cell[0] - guess[0]), abs(cell[1] - guess[1])) <= 1
    )
    return top / mass, Fraction(near) / (len(tied) * mass)


def success(
    weights: Weights, base: int, outputs: list[Cell], d: int, reports: int
) -> tuple[Fraction, Fraction]:
    """Return how often cell, and neighbourhood, are right: over all cells and all transcripts."""
    total = sum(weights.get(output, base) for output in outputs)  # the same for every cell
    exact = near = Fraction(0)
    for seen in product(outputs, repeat=reports):
        likelihood = likelihoods(weights, base, total, d, seen)
        seen_with = Fraction(sum(likelihood.values()), d * d)
        of_guess, of_neighbours = attack(likelihood)
        exact += seen_with * of_guess
        near += seen_with * of_neighbours
    return exact, near
