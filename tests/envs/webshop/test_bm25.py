from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from arl_gym.envs.webshop.bm25 import Index, IndexBuilder, byte_lengths
from arl_gym.errors import DataError


def indexed(folder: Path, texts: Sequence[str], ids: Sequence[str] | None = None) -> Index:
    builder = IndexBuilder(folder)
    for text in texts:
        builder.add(text)
    builder.finish(ids if ids is not None else [f"B{i:09}" for i in range(len(texts))])
    return Index(folder)


def test_the_document_with_more_of_the_query_comes_first(tmp_path):
    index = indexed(tmp_path, ["blue mug", "red mug", "red shoes", "hat"])
    assert index.top("red mugs") == [1, 0, 2]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!", "\ud800"])
def test_a_query_without_known_terms_finds_nothing(tmp_path, query):
    assert indexed(tmp_path, ["red mug"]).top(query) == []


def test_equal_scores_are_ranked_by_id(tmp_path):
    assert indexed(tmp_path, ["mug", "mug", "mug"], ["B3", "B1", "B2"]).top("mug") == [1, 2, 0]


def test_an_index_without_documents_finds_nothing(tmp_path):
    assert indexed(tmp_path, []).top("mug") == []


def test_ids_must_match_the_documents(tmp_path):
    builder = IndexBuilder(tmp_path)
    builder.add("mug")
    with pytest.raises(DataError, match="expected 1 ids, got 2"):
        builder.finish(["A", "B"])


def test_lengths_are_exact_to_40_and_then_have_four_significant_bits_above_24():
    lengths = np.array([0, 1, 24, 39, 40, 41, 42, 56, 59, 130, 1000])
    assert byte_lengths(lengths).tolist() == [0, 1, 24, 39, 40, 40, 42, 56, 56, 128, 984]
