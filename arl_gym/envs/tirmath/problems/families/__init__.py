"""The table of families.

A family draws a problem of a level from a stream. Its program holds all that was drawn but the wording, and
nothing else: two problems are the same if and only if their programs are. Levels of a family do not overlap.
"""

from collections.abc import Callable
from dataclasses import dataclass

from arl_gym.envs.tirmath.problems.families import (
    algebra,
    calculus,
    counting,
    geometry,
    number_theory,
    probability,
    tiny,
)
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A way to draw problems."""

    draw: Callable[[Rng, int], Problem]
    """Gives a problem of a level, without family and level."""
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    held_out: bool = False
    """Whether all its problems are of the split "test_ood" and of no other."""
    tiny: bool = False
    """For very small models; not among the default families."""


_TRAINED = (
    number_theory.modular_power,
    number_theory.chinese_remainder,
    number_theory.divisor_sums,
    number_theory.digit_sums,
    number_theory.linear_recurrence,
    counting.inclusion_exclusion,
    counting.lattice_points,
    counting.diophantine_count,
    counting.assignments,
    counting.subset_sums,
    probability.dice_sums,
    probability.expected_steps,
    algebra.linear_system,
    algebra.quadratic_roots,
    algebra.power_sums,
    algebra.polynomial_remainder,
    algebra.quadratic_inequality,
    algebra.matrix_power,
    geometry.lattice_polygon,
    geometry.triangle_measures,
    calculus.definite_integral,
)
_HELD_OUT = (number_theory.floor_sum, probability.gamblers_ruin, calculus.rational_series)
_TINY = (tiny.tiny_mod, tiny.tiny_gcd, tiny.tiny_digit_sum, tiny.tiny_divisors, tiny.tiny_squares)

TABLE: dict[str, Family] = {
    **{draw.__name__: Family(draw=draw) for draw in _TRAINED},
    **{draw.__name__: Family(draw=draw, held_out=True) for draw in _HELD_OUT},
    **{draw.__name__: Family(draw=draw, levels=(1,), tiny=True) for draw in _TINY},
    "tiny_gcd_product": Family(draw=tiny.tiny_gcd_product, levels=(1,), held_out=True, tiny=True),
}
