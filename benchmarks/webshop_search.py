"""How close is WebShop's search engine to Lucene, how fast, how big? Both on the same documents, in one run.

    pip download --no-deps pyserini==0.22.1      # has Lucene: unzip the wheel, needs Java 17
    python benchmarks/webshop_search.py --lucene pyserini/resources/jars/anserini-0.22.1-fatjar.jar
    python benchmarks/webshop_search.py --own 1000 10000 100000 1000000

`--data` is a folder with the original's `human_goals.json`, `goal_query_map.json` and
`parity/items_shuffle_1000.json`: the queries are people's (half instructions, half search phrases), the
documents are put together from real titles and words, about 130 terms each. With `--lucene` every size of
`--compare` is built and asked with both engines; without it that part is left out. `--own` measures ours
alone: each build in a process of its own, for its peak memory. Seconds and q/s are CPU time for ours and wall
time for Lucene, which uses several threads.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from arl_gym.envs.webshop.bm25 import Index, IndexBuilder
from arl_gym.envs.webshop.product import read_product
from arl_gym.rng import Rng

HERE = Path(__file__).resolve()
DATA = HERE.parents[2] / "shared" / "data" / "webshop"
HITS = 50


def documents(data: Path, n: int) -> Iterator[str]:
    """Yield a real title, runs of words of real products and a model number of its own, n times."""
    records = json.loads((data / "parity" / "items_shuffle_1000.json").read_text(encoding="utf-8"))
    products = [read_product(record) for record in records]
    words = " ".join(product.search_text for product in products).split()
    rng = Rng("webshop documents", 0)
    for k in range(n):
        starts = (rng.below(len(words) - 8) for _ in range(14))
        runs = (" ".join(words[start : start + 8]) for start in starts)
        yield f"{rng.choice(products).title.lower()} {' '.join(runs)} {k:x}v{rng.below(1 << 20):x}"


def asin(k: int) -> str:
    """Return an id; their order is not that of the documents."""
    return f"B{k * 7919 % 999_999_937:09}"


def queries(data: Path, n: int) -> list[str]:
    """Return instructions and search phrases that people wrote, in turn."""
    goals = json.loads((data / "human_goals.json").read_text(encoding="utf-8"))
    phrases = json.loads((data / "goal_query_map.json").read_text(encoding="utf-8")).values()
    pairs = zip(goals, (phrase for some in phrases for phrase in some), strict=False)
    return [" ".join(query.split()) for pair in pairs for query in pair][:n]


def build(data: Path, n: int, folder: Path) -> dict[str, float]:
    """Build our index; return seconds of CPU time, without those that make the documents, and peak MB."""
    builder, spent = IndexBuilder(folder), 0.0
    for text in documents(data, n):
        start = time.process_time()
        builder.add(text)
        spent += time.process_time() - start
    start = time.process_time()
    builder.finish([asin(k) for k in range(n)])
    spent += time.process_time() - start
    return {"build_s": spent, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def build_apart(data: Path, n: int, folder: Path) -> dict[str, float]:
    """Run `build` in a process of its own."""
    command = [sys.executable, str(HERE), "--data", str(data), "--build", str(n), str(folder)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {key: float(value) for key, value in json.loads(run.stdout).items()}


def search(folder: Path, asked: Sequence[str]) -> tuple[list[list[int]], list[float]]:
    """Return what our index finds, and the CPU seconds of every query."""
    index, found, seconds = Index(folder), [], []
    for query in asked:
        start = time.process_time()
        found.append(index.top(query, HITS))
        seconds.append(time.process_time() - start)
    return found, seconds


def megabytes(folder: Path) -> float:
    """Return the size of the files of a folder."""
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def ask_lucene(
    jar: Path, data: Path, n: int, asked: Sequence[str], folder: Path
) -> tuple[list[list[str]], dict[str, float]]:
    """Return the ids that Lucene finds, and the seconds of its build and of two passes over the queries."""
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as out:
        for k, text in enumerate(documents(data, n)):
            out.write(json.dumps({"id": asin(k), "contents": text}) + "\n")
    (folder / "queries.txt").write_text("\n".join(asked), encoding="utf-8")
    arguments = [folder / name for name in ("documents.jsonl", "queries.txt", "lucene", "found.txt")]
    command = ["java", "-Xmx4g", "-cp", jar, HERE.with_name("webshop_lucene.java"), *arguments, HITS]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"Lucene failed:\n{run.stderr[-2000:]}")
    found = [line.split() for line in (folder / "found.txt").read_text().splitlines()]
    return found, json.loads(run.stdout.splitlines()[-1])


def overlap(ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]], k: int) -> float:
    """Return the mean share of Lucene's first k that are among our first k."""
    shares = [len({*a[:k]} & {*b[:k]}) / len(b[:k]) for a, b in zip(ours, theirs, strict=True) if b]
    return statistics.fmean(shares)


def compare(jar: Path, data: Path, n: int, asked: Sequence[str], folder: Path) -> None:
    """Print two lines of the table of both engines."""
    built = build(data, n, folder / "ours")
    numbers, seconds = search(folder / "ours", asked)
    again = search(folder / "ours", asked)[1]
    ours = [[asin(number) for number in found] for found in numbers]
    theirs, lucene = ask_lucene(jar, data, n, asked, folder)
    equal = [overlap(ours, theirs, 1), overlap(ours, theirs, 10), overlap(ours, theirs, HITS)]
    same = statistics.fmean(a == b for a, b in zip(ours, theirs, strict=True))
    shares = " | ".join(f"{share:.4f}" for share in (*equal, same))
    rates = f"{len(asked) / sum(seconds):.0f} | {len(asked) / sum(again):.0f}"
    print(f"| {n} | ours | {shares} | {built['build_s']:.2f} | {rates} | {megabytes(folder / 'ours'):.1f} |")
    rates = f"{len(asked) / lucene['first_s']:.0f} | {len(asked) / lucene['again_s']:.0f}"
    size = megabytes(folder / "lucene")
    print(f"| {n} | Lucene | | | | | {lucene['build_s']:.2f} | {rates} | {size:.1f} |", flush=True)


def measure(data: Path, n: int, asked: Sequence[str], folder: Path) -> None:
    """Print one line of the table of our engine."""
    built = build_apart(data, n, folder)
    search(folder, asked[:20])  # the files' first pages come from the disk once a machine, not once a query
    milliseconds = sorted(1e3 * s for s in search(folder, asked)[1])
    middle, late = statistics.median(milliseconds), milliseconds[len(milliseconds) * 99 // 100]
    sizes = f"{built['build_s']:.1f} | {built['peak_mb']:.0f} | {megabytes(folder):.1f}"
    print(f"| {n} | {sizes} | {middle:.3f} | {late:.3f} |", flush=True)


def main() -> None:
    """Compare with Lucene, then measure our engine alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--lucene", type=Path, help="Anserini's jar with everything")
    parser.add_argument("--compare", type=int, nargs="*", default=[1_000, 50_000])
    parser.add_argument("--own", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--build", nargs=2, metavar=("N", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.build:
        print(json.dumps(build(args.data, int(args.build[0]), Path(args.build[1]))))
        return
    asked = queries(args.data, args.queries)
    if args.lucene:
        print(
            "| documents | engine | same first | of first 10 | of 50 | same 50 | build s | q/s | again | MB |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
        for n in args.compare:
            with tempfile.TemporaryDirectory() as folder:
                compare(args.lucene, args.data, n, asked, Path(folder))
    else:
        print("the comparison with Lucene is left out: it needs --lucene JAR", file=sys.stderr)
    print("\n| documents | build s | peak MB of the build | index MB | median ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    for n in args.own:
        with tempfile.TemporaryDirectory() as folder:
            measure(args.data, n, asked, Path(folder))


if __name__ == "__main__":
    main()
