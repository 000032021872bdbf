"""TIR-Math's sandbox: speed against fresh interpreters, leaks, and what hostile programs can do.

    python benchmarks/tirmath_sandbox.py speed                    # latency and rate at concurrency 1, 2, 16
    python benchmarks/tirmath_sandbox.py soak --executions 20000  # processes, descriptors, files, memory
    python benchmarks/tirmath_sandbox.py hostile                  # program x tier x user: contained?

Rates of the sandbox and of fresh interpreters come from the same run: on a noisy machine their ratio says
more than either. As root, `hostile` runs everything a second time as an ordinary user.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from arl_gym.envs.tirmath.sandbox import Sandbox

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sympy, numpy
x = sympy.Symbol("x")
print(sympy.expand((x + 1) ** 3), numpy.arange(10).sum())
"""
EXPECTED = "x**3 + 3*x**2 + 3*x + 1 45\n"


def main() -> int:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    speed_parser = commands.add_parser("speed", help="latency and rate")
    speed_parser.add_argument("--executions", type=int, default=300, help="of the sandbox, per row")
    soak_parser = commands.add_parser("soak", help="leaks")
    soak_parser.add_argument("--executions", type=int, default=20000)
    hostile_parser = commands.add_parser("hostile", help="containment")
    for each in (speed_parser, soak_parser):
        each.add_argument("--tier", default="auto")
    hostile_parser.add_argument("--tier", nargs="+", default=["namespace", "landlock"])
    args = parser.parse_args()
    if args.command == "speed":
        return speed(args.tier, args.executions)
    if args.command == "soak":
        return soak(args.tier, args.executions)
    return hostile(args.tier)


def speed(tier: str, executions: int) -> int:
    """Print latencies, rates and CPU time; x: how many times better than fresh interpreters."""
    with Sandbox(tier) as sandbox:
        print(f"tier {sandbox.tier}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        print(f"{'what':<10}{'c':>4}{'p50 ms':>9}{'p99 ms':>9}{'exec/s':>9}{'x':>6}{'CPU ms':>9}{'x':>6}")
        for concurrency in (1, 2, 16):
            fresh = Speed(fresh_interpreter, concurrency, max(6, 2 * concurrency))
            ours = Speed(lambda: sandbox.run(PROGRAM).stdout, concurrency, executions)
            print(fresh.row("fresh", fresh), ours.row("sandbox", fresh), sep="\n", flush=True)
    return 0


class Speed:
    """How fast something executes the program."""

    def __init__(self, execute: Callable[[], str], concurrency: int, executions: int):
        self.concurrency = concurrency
        with ThreadPoolExecutor(concurrency) as pool:
            cpu, start = cpu_seconds(), time.perf_counter()
            self.latencies_ms = sorted(pool.map(lambda _: self.timed(execute), range(executions)))
            self.per_second = executions / (time.perf_counter() - start)
            self.cpu_ms = (cpu_seconds() - cpu) * 1000 / executions

    def timed(self, execute: Callable[[], str]) -> float:
        """Return the milliseconds of one execution."""
        start = time.perf_counter()
        output = execute()
        if output != EXPECTED:
            raise SystemExit(f"expected {EXPECTED!r}, got {output!r}")
        return (time.perf_counter() - start) * 1000

    def row(self, what: str, peer: "Speed") -> str:
        """Return a row of the table."""
        p50 = self.latencies_ms[len(self.latencies_ms) // 2]
        p99 = self.latencies_ms[int(0.99 * (len(self.latencies_ms) - 1))]
        rate, cpu = self.per_second / peer.per_second, peer.cpu_ms / self.cpu_ms
        return (
            f"{what:<10}{self.concurrency:>4}{p50:>9.1f}{p99:>9.1f}{self.per_second:>9.1f}{rate:>6.1f}"
            f"{self.cpu_ms:>9.1f}{cpu:>6.1f}"
        )


def cpu_seconds() -> float:
    """Return the CPU time of this process, of all below it, and of those of them that have ended."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    stats = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in descendants(os.getpid())
    ]
    ticks = sum(int(field) for fields in stats for field in fields[11:15])
    return float(own) + ticks / os.sysconf("SC_CLK_TCK")


def fresh_interpreter() -> str:
    """Run the program in a fresh interpreter under the same kinds of limits."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        check=True,
        text=True,
    ).stdout


def limit() -> None:
    """Set the limits of a fresh interpreter."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (4, 4))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def soak(tier: str, executions: int) -> int:
    """Run many programs, some of them ill-behaved; print what has grown."""
    programs = [PROGRAM] * 40 + ["1/0", "print('x' * 10**6)", "[0] * 10**11", "import os; os._exit(3)"]
    statuses: Counter[str] = Counter()
    with Sandbox(tier, timeout_s=5.0) as sandbox, ThreadPoolExecutor(16) as pool:

        def run_all(count: int) -> None:
            # In portions: results that wait to be counted are memory too.
            for done in range(0, count, 220):
                chosen = (programs[i % len(programs)] for i in range(done, min(count, done + 220)))
                statuses.update(execution.status for execution in pool.map(sandbox.run, chosen))

        run_all(440)
        statuses.clear()
        before, start = holdings(), time.perf_counter()
        run_all(executions)
        seconds, after = time.perf_counter() - start, holdings()
    print(
        f"tier {sandbox.tier}: {executions} executions, {seconds:.0f} s, {executions / seconds:.0f} a second"
    )
    print(", ".join(f"{status} {count}" for status, count in sorted(statuses.items())))
    for name, value in before.items():
        print(f"{name:<24}{value:>10.1f}{after[name]:>10.1f}")
    return 0


def hostile(tiers: list[str]) -> int:
    """Print for every hostile program whether it was contained, by tier and user."""
    uids = [None] if os.getuid() else [None, 65534]
    results = {(tier, uid): containment(tier, uid) for tier in tiers for uid in uids}
    heads = [f"{tier} {'' if uid is None else uid}".strip() for tier, uid in results]
    print(f"{'program':<36}" + "".join(f"{head:>18}" for head in heads))
    for name in next(iter(results.values())):
        cells = ["yes" if not result[name] else "NO" for result in results.values()]
        print(f"{name:<36}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"{'contained':<36}" + "".join(f"{tally(result):>18}" for result in results.values()))
    escapes = [f"{name}: {what}" for result in results.values() for name, what in result.items() if what]
    print("\n".join(escapes))
    return 1 if escapes else 0


def tally(result: dict[str, str]) -> str:
    """Return how many programs of all were contained."""
    return f"{sum(not what for what in result.values())}/{len(result)}"


def containment(tier: str, uid: int | None) -> dict[str, str]:
    """Run the hostile programs of the tests; return by name what was not contained."""
    command = [sys.executable, "-m", "tests.envs.tirmath.sandbox.containment", "--tier", tier]
    command += [] if uid is None else ["--uid", str(uid)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    results: dict[str, str] = json.loads(done.stdout)["results"]
    return results


def holdings() -> dict[str, float]:
    """Return what the supervisor and the template hold, when nothing runs."""
    time.sleep(0.5)  # what ends, ends now
    family = descendants(os.getpid())
    template = max(family, key=rss_mb)
    return {
        "processes": len(family),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "template's descriptors": len(os.listdir(f"/proc/{template}/fd")),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "supervisor RSS MB": rss_mb(os.getpid()),
        "template RSS MB": rss_mb(template),
    }


def descendants(pid: int) -> list[int]:
    """Return the processes below a process."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return children + [each for child in children for each in descendants(child)]


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


if __name__ == "__main__":
    sys.exit(main())
