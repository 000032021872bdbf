"""What a generator of catalogues gives: families of products that are told apart by one detail each."""

from collections.abc import Callable
from dataclasses import dataclass

from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A few products of one kind and the goals that ask for one of them; all of them are in one split."""

    split: str
    """One of `core.SPLITS`; "test_ood" for leaf categories that no other split has."""
    products: tuple[Product, ...]
    """Their `family` is the same, and of no other family."""
    goals: tuple[Goal, ...]
    """Each is fulfilled to a score of exactly 1.0 by the product it names."""


Generator = Callable[[int], Family]
"""Gives family k, from 0; the same in every process, whatever the number of products."""
