import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.rng import Rng, derive, digest, nth_word


def rng_at(state):
    rng = Rng()
    rng.state = state
    return rng


def test_the_stream_from_state_zero_is_splitmix64s():
    # Published outputs for seed 0.
    rng = rng_at(0)
    assert [rng.next64() for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_the_state_grows_by_the_golden_gamma_modulo_two_to_the_64():
    rng = rng_at(2**64 - 1)
    rng.next64()
    assert rng.state == 0x9E3779B97F4A7C15 - 1


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**64))
def test_below_stays_in_range(state, n):
    assert 0 <= rng_at(state).below(n) < n


def test_below_takes_the_word_modulo_n():
    # 0xE220A8397B1DCDAF = 16294208416658607535; 2**64 mod 10 = 6, far below it.
    assert rng_at(0).below(10) == 5
    assert rng_at(0).below(2**64) == 0xE220A8397B1DCDAF


def test_below_draws_again_where_the_remainder_would_favour_small_values():
    # For n = 2**63 + 1 the words under 2**64 mod n = 2**63 - 1 are refused. From state 0 the first word is
    # above it and taken; from the second state on, 0x6E78… and 0x06C4… are below and skipped.
    n = 2**63 + 1
    assert rng_at(0).below(n) == 0xE220A8397B1DCDAF - n
    rng = rng_at(0x9E3779B97F4A7C15)
    assert rng.below(n) == 0xF88BB8A8724C81EC - n
    assert rng.state == 4 * 0x9E3779B97F4A7C15 % 2**64


def test_below_is_uniform_over_a_small_range():
    rng = Rng("uniform")
    counts = [0] * 6
    for _ in range(6000):
        counts[rng.below(6)] += 1
    # Standard deviation of one count: sqrt(6000 * 1/6 * 5/6) = 29.
    assert all(abs(c - 1000) < 5 * 29 for c in counts)


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_below_refuses_an_empty_or_too_large_range(n):
    with pytest.raises(ValueError, match="1 <= n"):
        Rng().below(n)


def test_uniform_is_the_top_53_bits():
    assert rng_at(0).uniform() == (0xE220A8397B1DCDAF >> 11) / 2**53


@given(st.lists(st.integers()))
def test_shuffle_permutes(items):
    shuffled = list(items)
    Rng(len(items)).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_shuffle_reaches_every_order():
    orders = set()
    for k in range(200):
        items = [0, 1, 2]
        Rng("shuffle", k).shuffle(items)
        orders.add(tuple(items))
    assert len(orders) == 6


def test_choice_reaches_every_item_and_no_other():
    assert {Rng(k).choice("abc") for k in range(50)} == set("abc")


PINNED: dict[tuple[int | str, ...], int] = {
    (): 14368017890445460849,
    ("task", 0): 17989240851553341121,
    ("sokoban", 7, "é"): 7336360023118721563,
}


@pytest.mark.parametrize(("key", "seed"), PINNED.items())
def test_derived_seeds_never_change(key, seed):
    assert derive(*key) == seed


def test_keys_that_look_alike_give_other_seeds():
    keys: list[tuple[int | str, ...]] = [("1",), (1,), (1, 2), (12,), ("1,2",), ("1", "2"), (-1,), ()]
    assert len({derive(*key) for key in keys}) == len(keys)


def test_a_digest_is_16_hex_digits_of_blake2b():
    assert digest("") == "e4a6a0577479b2b4"


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_another_process_with_another_hash_seed_derives_the_same(hash_seed):
    code = (
        "from arl_gym.rng import Rng, derive, digest; "
        "print(derive('task', 3), digest('a'), Rng('x', 1).below(99))"
    )
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert out.split() == [str(derive("task", 3)), digest("a"), str(Rng("x", 1).below(99))]


def test_any_word_of_a_stream_can_be_had_alone():
    rng = Rng("key")
    words = [rng.next64() for _ in range(5)]
    assert [nth_word(derive("key"), n) for n in range(5)] == words
