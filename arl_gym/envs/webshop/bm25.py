"""A search engine in a folder: BM25 as Lucene computes it, over memory-mapped arrays.

    builder = IndexBuilder(folder)
    builder.add("red mug")
    builder.finish(["B000000001"])
    Index(folder).top("mugs")  # [0]

Files, all `.npy`: `terms` the sorted terms in UTF-8, one after the other, and `term_ptr` where each begins;
`ptr` where the postings of each term begin in `docs` (int32) and `impact` (float32, what the term adds to the
document's score); `peak` the largest impact of each term; `rank` the place of each document by its id.

References:
    Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009.
"""

import tempfile
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arl_gym.envs.webshop.analyzer import stem, tokens, words
from arl_gym.errors import DataError

K1 = np.float32(0.9)
B = np.float32(0.4)

MAX_TERMS = 1024
"""Distinct terms of a query that count; Lucene refuses a query of more."""

# Words that are held in memory before they are written, and distinct ones whose term is remembered.
_CHUNK = 1 << 21
_REMEMBERED = 1 << 20
# Number of the terms that are not indexed.
_STOP = 0

# Postings of a query up to which adding them all up costs less than leaving some out.
_FEW = 1 << 16
# Scores that are equal as float32 are ranked by id: a bound must leave room for the rounding.
_SLACK = 1 - 1e-6


class IndexBuilder:
    """Writes an index, document by document; memory is bounded but for the distinct terms."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._spill = tempfile.TemporaryDirectory(dir=folder, prefix="chunks-")
        self._chunks = 0
        self._terms = {"": _STOP}
        self._numbers = _Numbers(self._terms)
        self._words = array("i")
        self._buffered = array("i")
        self._documents = 0
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, text: str) -> None:
        """Add the next document."""
        before = len(self._words)
        self._words.extend(map(self._numbers.__getitem__, words(text)))
        self._buffered.append(len(self._words) - before)
        if len(self._words) >= _CHUNK:
            self._write_chunk()

    def finish(self, ids: Sequence[str]) -> None:
        """Write the files.

        Args:
            ids: The id of each document in the order they were added; equal scores are ranked by them.

        Raises:
            DataError: If there are not as many ids as documents.
        """
        self._write_chunk()
        self._numbers.clear()
        lengths = np.concatenate(self._lengths)
        if len(ids) != len(lengths):
            raise DataError(f"index {self._folder}: expected {len(lengths)} ids, got {len(ids)}")
        self._save("rank", _ranks(ids))
        places = self._write_terms()
        frequency = self._document_frequency(places)
        ptr = np.concatenate(([0], np.cumsum(frequency)))
        self._save("ptr", ptr)
        self._write_postings(places, ptr, _idf(frequency, int(np.count_nonzero(lengths))), _norms(lengths))
        self._spill.cleanup()

    def _save(self, name: str, values: NDArray[Any]) -> None:
        np.save(self._folder / f"{name}.npy", values)

    def _chunk(self, number: int) -> Path:
        return Path(self._spill.name, f"{number}.npy")

    def _write_chunk(self) -> None:
        """Write the (term, document, count) of the buffered documents, sorted, and forget their words."""
        lengths = np.array(self._buffered, dtype=np.int64)
        numbers = np.array(self._words, dtype=np.int64)
        documents = np.repeat(np.arange(len(lengths)), lengths)
        kept = numbers != _STOP
        self._lengths.append(np.bincount(documents[kept], minlength=len(lengths)))
        pairs, counts = np.unique(numbers[kept] << 32 | documents[kept] + self._documents, return_counts=True)
        postings = np.stack((pairs >> 32, pairs & 0xFFFFFFFF, counts)).astype(np.int32)  # (3, P)
        np.save(self._chunk(self._chunks), postings)
        self._chunks += 1
        self._documents += len(lengths)
        del self._words[:], self._buffered[:]

    def _write_terms(self) -> NDArray[np.int64]:
        """Write the sorted terms; return the place of each among them by its number."""
        terms = list(self._terms)[1:]
        by_text = sorted(range(len(terms)), key=terms.__getitem__)
        blobs = [terms[i].encode() for i in by_text]
        self._save("terms", np.frombuffer(b"".join(blobs), dtype=np.uint8))
        self._save("term_ptr", np.array([0, *accumulate(map(len, blobs))], dtype=np.int64))
        places = np.zeros(len(terms) + 1, dtype=np.int64)
        places[np.array(by_text, dtype=np.int64) + 1] = np.arange(len(terms))
        return places

    def _document_frequency(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        frequency = np.zeros(len(places) - 1, dtype=np.int64)
        for number in range(self._chunks):
            terms = np.load(self._chunk(number), mmap_mode="r")[0]
            frequency += np.bincount(places[terms], minlength=len(frequency))
        return frequency

    def _write_postings(
        self,
        places: NDArray[np.int64],
        ptr: NDArray[np.int64],
        idf: NDArray[np.float32],
        norms: NDArray[np.float32],
    ) -> None:
        docs = np.lib.format.open_memmap(self._folder / "docs.npy", "w+", np.int32, (int(ptr[-1]),))
        impact = np.lib.format.open_memmap(self._folder / "impact.npy", "w+", np.float32, docs.shape)
        peak = np.zeros(len(idf), dtype=np.float32)
        filled = ptr[:-1].copy()
        for number in range(self._chunks):
            terms, documents, counts = np.load(self._chunk(number))
            terms = places[terms]
            starts = np.flatnonzero(np.diff(terms, prepend=-1))
            lengths = np.diff(starts, append=len(terms))
            here = terms[starts]
            at = np.repeat(filled[here] - starts, lengths) + np.arange(len(terms))
            filled[here] += lengths
            weight = idf[terms]
            values = weight - weight / (1 + counts.astype(np.float32) * norms[documents])
            docs[at] = documents
            impact[at] = values
            peak[here] = np.maximum(peak[here], np.maximum.reduceat(values, starts))
        self._save("peak", peak)


def _ranks(ids: Sequence[str]) -> NDArray[np.int32]:
    ranks = np.empty(len(ids), dtype=np.int32)
    ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids), dtype=np.int32)
    return ranks


def _idf(frequency: NDArray[np.int64], documents: int) -> NDArray[np.float32]:
    odds = (documents - frequency + 0.5) / (frequency + 0.5)
    idf: NDArray[np.float32] = np.log(1 + odds).astype(np.float32)
    return idf


def _norms(lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return 1 / (k1 (1 - b + b dl / avgdl)) of every document, in the float32 steps of Lucene."""
    mean = np.float32(max(1, lengths.sum()) / max(1, np.count_nonzero(lengths)))
    relative = B * byte_lengths(lengths).astype(np.float32) / mean
    norms: NDArray[np.float32] = np.reciprocal(K1 * ((np.float32(1) - B) + relative))
    return norms


def byte_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return document lengths as Lucene's one byte keeps them: exact to 40, then four significant bits."""
    excess = np.maximum(lengths - 24, 0)
    shift = np.maximum(np.frexp(excess)[1] - 4, 0)
    kept: NDArray[np.int64] = np.minimum(lengths, 24) + (excess >> shift << shift)
    return kept


class _Match(NamedTuple):
    """A term of a query: its documents in order, what it adds to the score of each, and at most."""

    docs: NDArray[np.int32]
    impact: NDArray[np.float32]
    peak: float

    def times(self, count: int) -> "_Match":
        if count == 1:
            return self
        return _Match(self.docs, self.impact * np.float32(count), self.peak * count)


class Index:
    """An index that was written by `IndexBuilder`; other processes share the memory of its files."""

    def __init__(self, folder: Path):
        self._terms = _load(folder, "terms").data
        self._term_ptr = _load(folder, "term_ptr").data
        self._ptr = _load(folder, "ptr").data
        self._peak = _load(folder, "peak").data
        self._docs = _load(folder, "docs")
        self._impact = _load(folder, "impact")
        self._rank = _load(folder, "rank")
        self._find = lru_cache(maxsize=1 << 12)(self._find_term)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._rank)

    def top(self, query: str, k: int = 50) -> list[int]:
        """Return the numbers of the k best documents that have a term of the query, best first.

        Args:
            query: Any text. Of its distinct terms the first `MAX_TERMS` count.
            k: How many at most.
        """
        counts = islice(Counter(tokens(query)).items(), MAX_TERMS)
        matches = [match.times(n) for term, n in counts if (match := self._find(term))]
        if not matches:
            return []
        if sum(len(match.docs) for match in matches) <= _FEW:
            return self._best(*self._all(matches, k), k)
        return self._best(*self._promising(matches, k), k)

    def _all(self, matches: Sequence[_Match], k: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Add up all there is; return what is among the k best, and perhaps a few more, with the scores."""
        docs = np.concatenate([match.docs for match in matches])
        impact = np.concatenate([match.impact for match in matches])
        scores = np.bincount(docs, impact).astype(np.float64, copy=False)
        found = np.flatnonzero(scores > _least(scores, k))
        return found, scores[found]

    def _promising(self, matches: list[_Match], k: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the same, without looking at many documents that cannot be among the k best.

        Terms come by what they can add at most. When all that is left adds less than the k-th best has
        already, no new document can come in: the long lists that are left are only searched for the others.

        References:
            MaxScore: Turtle and Flood, Query evaluation: strategies and optimizations, 1995.
        """
        matches.sort(key=lambda match: -match.peak)
        rest = [*accumulate((match.peak for match in reversed(matches)), initial=0.0)][::-1]
        scores = np.zeros(len(self))
        least = 0.0
        done = 0
        while done < len(matches) and rest[done] >= least:
            match = matches[done]
            scores[match.docs] += match.impact
            done += 1
            if rest[done] < rest[0] - rest[done]:
                least = max(least, _least(scores[match.docs], k))
        docs = np.flatnonzero(scores > max(0.0, least - rest[done])).astype(np.int32)
        kept = scores[docs]
        for after, match in enumerate(matches[done:], start=done + 1):
            at = np.minimum(np.searchsorted(match.docs, docs), len(match.docs) - 1)
            kept += np.where(match.docs[at] == docs, match.impact[at], 0)
            least = max(least, _least(kept, k))
            able = kept >= least - rest[after]
            docs, kept = docs[able], kept[able]
        return docs, kept

    def _best(self, docs: NDArray[Any], scores: NDArray[np.float64], k: int) -> list[int]:
        scores = scores.astype(np.float32)
        if k < len(docs):
            able = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            docs, scores = docs[able], scores[able]
        best: list[int] = docs[np.lexsort((self._rank[docs], -scores))[:k]].tolist()
        return best

    def _find_term(self, term: str) -> _Match | None:
        wanted = term.encode()
        place = bisect_left(range(len(self._peak)), wanted, key=self._term)
        if place == len(self._peak) or self._term(place) != wanted:
            return None
        postings = slice(self._ptr[place], self._ptr[place + 1])
        return _Match(self._docs[postings], self._impact[postings], self._peak[place])

    def _term(self, place: int) -> bytes:
        return self._terms[self._term_ptr[place] : self._term_ptr[place + 1]].tobytes()


def _least(scores: NDArray[np.float64], k: int) -> float:
    """Return a score that is just below the k-th best, 0 if there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) * _SLACK if k < len(scores) else 0.0


def _load(folder: Path, name: str) -> NDArray[Any]:
    # A plain array over the same memory: slicing a memmap costs ten times as much.
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))


class _Numbers(dict[str, int]):
    def __init__(self, terms: dict[str, int]):
        self._terms = terms

    def __missing__(self, word: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        term = stem(word)
        number = self[word] = self._terms.setdefault(term, len(self._terms))
        return number
