"""Hostile programs, and what it means that they are contained.

A program is a template: `$secret` a file of the host, `$folder` a folder that anybody may write to, `$home`
that of the supervisor's user, `$pid` the supervisor, `$tcp` and `$udp` ports that listen, `$abstract` an
abstract socket that listens. `attempt` (see PRELUDE) prints "refused" or "BREACH", and lets any exception but
OSError through: a program that is merely broken does not count as contained.
"""

from collections.abc import Callable
from dataclasses import dataclass

from arl_gym.envs.tirmath.sandbox import Execution

PRELUDE = """
import ctypes, os, platform, sys

def attempt(action):
    try:
        value = action()
    except OSError as error:
        print("refused", type(error).__name__)
    else:
        print("BREACH", repr(value)[:200])

_libc = ctypes.CDLL(None, use_errno=True)

def call(x86, arm, *args):
    number = x86 if platform.machine() == "x86_64" else arm
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        raise OSError(ctypes.get_errno(), "syscall")
    return result

def read(path):
    with open(path, "rb") as file:
        return file.read(64) or 1 / 0

def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("x")
    return path
"""

Check = Callable[[Execution], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """A program; `contained` says whether its execution shows that it got nowhere."""

    name: str
    program: str
    contained: Check
    stdin: str = ""
    slow: bool = False
    """Runs until its time is up."""


def refused(execution: Execution) -> bool:
    """Every attempt was made and refused."""
    return execution.status == "ok" and "refused" in execution.stdout and "BREACH" not in execution.stdout


def bounded(limit: int) -> Check:
    """The program printed how far it came: less than the limit. Or it ran out of memory or died before."""

    def check(execution: Execution) -> bool:
        if execution.status != "ok":
            return execution.status in ("memory", "killed", "error") and "BREACH" not in execution.stdout
        return int(execution.stdout.split()[-1]) < limit

    return check


def ended(*statuses: str) -> Check:
    """The supervisor said one of these."""
    return lambda execution: execution.status in statuses and "BREACH" not in execution.stdout


def said(stdout: str, status: str = "ok") -> Check:
    """Exactly this output and status."""
    return lambda execution: (execution.stdout, execution.status) == (stdout, status)


# One expression each.
_ATTEMPTS = {
    "read passwd": 'read("/etc/passwd")',
    "read shadow": 'read("/etc/shadow")',
    "read host file": 'read("$secret")',
    "read host file through dots": 'read(os.path.join(sys.prefix, "../" * 40 + "$secret".lstrip("/")))',
    "read this package": 'read("$package/__init__.py")',
    "read the package's data": 'read("$package/_assets/README.md")',
    "list processes": 'os.listdir("/proc")',
    "list host folder": 'os.listdir("$folder")',
    "read block device": 'read("/dev/vda")',
    "read physical memory": 'read("/dev/mem")',
    "read kernel log": 'read("/dev/kmsg")',
    "write home": 'write("$home/arl_gym_breach")',
    "write host folder": 'write("$folder/breach")',
    "write temporary file": 'write("/tmp/arl_gym_breach")',
    "write shared memory": 'write("/dev/shm/arl_gym_breach")',
    "write here": 'write("breach.txt")',
    "write the standard library": 'write(os.path.join(os.path.dirname(os.__file__), "breach.py"))',
    "append to the standard library": 'write(os.__file__, "a")',
    "write numpy": 'write(sys.modules["numpy"].__file__, "r+")',
    "append to host file": 'write("$secret", "a")',
    "truncate host file": 'os.truncate("$secret", 0)',
    "unlink host file": 'os.unlink("$secret")',
    "rename host file": 'os.rename("$secret", "$folder/moved")',
    "chmod host file": 'os.chmod("$secret", 0o777)',
    "chown host file": 'os.chown("$secret", os.getuid(), os.getgid())',
    "date host file": 'os.utime("$secret", (0, 0))',
    "label host file": 'os.setxattr("$secret", "user.breach", b"x")',
    "make directory": 'os.mkdir("$folder/breach")',
    "symlink": 'os.symlink("/etc/passwd", "$folder/breach") or read("$folder/breach")',
    "hard link": 'os.link("$secret", "$folder/breach")',
    "unnamed file": 'os.open("$folder", os.O_TMPFILE | os.O_RDWR)',
    "fifo": 'os.mkfifo("$folder/breach")',
    "device node": 'os.mknod("$folder/breach", 0o20666, os.makedev(1, 1))',
    "chroot": 'os.chroot("$folder")',
    "own environment in proc": 'read("/proc/self/environ")',
    "environment of process 1": 'read("/proc/1/environ")',
    "environment of the template": 'read(f"/proc/{os.getppid()}/environ")',
    "environment of the supervisor": 'read("/proc/$pid/environ")',
    "memory of the template": 'read(f"/proc/{os.getppid()}/mem")',
    "memory of the supervisor": 'read("/proc/$pid/mem")',
    "own memory in proc": 'open("/proc/self/mem", "r+b")',
    "root of process 1": 'os.listdir("/proc/1/root")',
    "fork": "os.fork() or os._exit(0)",
    "fork a terminal": "__import__('pty').fork()",
    "spawn": 'os.posix_spawn("/bin/true", ["true"], {})',
    "execute": 'os.execv("/bin/true", ["true"])',
    "execute python": 'os.execv(sys.executable, ["python", "-c", "print(\\"BREACH\\")"])',
    "execute by the loader": 'os.execv("/lib64/ld-linux-x86-64.so.2", ["ld", "/bin/true"])',
    "subprocess": '__import__("subprocess").run(["ls", "/"])',
    "session": "os.setsid()",
    "process group": "os.setpgid(0, 0)",
    "signal 0 to the template": "os.kill(os.getppid(), 0)",
    "signal 0 to the supervisor": "os.kill($pid, 0)",
    "signal 0 to all": "os.kill(-1, 0)",
    "signal 0 to the group": "os.kill(0, 0)",
    "signal 0 to process 1": "os.kill(1, 0)",
    "open the template's pidfd": "os.pidfd_open(os.getppid())",
    "limits of the template": '__import__("resource").prlimit(os.getppid(), 7)',
    "limits of the supervisor": '__import__("resource").prlimit($pid, 7)',
    "processors of the template": "os.sched_setaffinity(os.getppid(), {0})",
    "scheduling class": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "priority": "os.nice(-5)",
    "setuid": "os.setuid(0)",
    "setresuid": "os.setresuid(0, 0, 0)",
    "setgroups": "os.setgroups([0])",
    "host name": '__import__("socket").sethostname("breach")',
    "clock": '__import__("time").clock_settime(0, 0.0)',
    "memory file": 'os.memfd_create("breach")',
    "TCP to the host": '__import__("socket").create_connection(("127.0.0.1", $tcp), 1)',
    "TCP to the world": '__import__("socket").create_connection(("192.0.2.1", 80), 1)',
    "UDP to the host": '__import__("socket").socket(2, 2).sendto(b"x", ("127.0.0.1", $udp))',
    "listen": '__import__("socket").create_server(("127.0.0.1", 0))',
    "TCP over IPv6": '__import__("socket").socket(10, 1)',
    "raw socket": '__import__("socket").socket(2, 3, 1)',
    "packet socket": '__import__("socket").socket(17, 3, 0)',
    "netlink": '__import__("socket").socket(16, 3, 0)',
    "kernel crypto socket": '__import__("socket").socket(38, 5, 0)',
    "vsock": '__import__("socket").socket(40, 1, 0)',
    "unix socket": '__import__("socket").socket(1, 1)',
    "abstract socket": '__import__("socket").socket(1, 1).connect("\\0$abstract")',
    "datagram pair": '__import__("socket").socketpair(1, 2)[0].sendto(b"x", "\\0$abstract")',
    "lock a library file": '__import__("fcntl").flock(open(os.__file__), 2)',
    "own asynchronous input": '__import__("fcntl").fcntl(0, 8, os.getppid())',
    "push a terminal character": '__import__("fcntl").ioctl(0, 0x5412, b"x")',
    "claim a terminal": '__import__("fcntl").ioctl(0, 0x540E, 0)',
    "process pool": '__import__("multiprocessing").get_context("fork").Process(target=print).start()',
    "lock memory": "call(151, 230, 1)",
}
# Numbers on x86_64 and aarch64, then the arguments.
_SYSCALLS = {
    "unlimited address space": "160, 164, 9, b'\\xff' * 16",
    "more descriptors": "160, 164, 7, b'\\0\\x10\\0\\0\\0\\0\\0\\0' * 2",
    "more CPU time": "302, 261, 0, 0, b'\\xff' * 16, None",
    "ptrace the template": "101, 117, 16, os.getppid(), 0, 0",
    "ptrace by the parent": "101, 117, 0, 0, 0, 0",
    "read another's memory": "310, 270, os.getppid(), 0, 0, 0, 0, 0",
    "write another's memory": "311, 271, os.getppid(), 0, 0, 0, 0, 0",
    "compare processes": "312, 272, os.getpid(), os.getppid(), 0, 0, 0",
    "queue a signal": "129, 138, os.getppid(), 0, ctypes.create_string_buffer(128)",
    "signal a thread": "200, 130, os.getppid(), 0",
    "signal a thread of a group": "234, 131, os.getppid(), os.getppid(), 0",
    "signal by pidfd": "424, 424, 0, 0, None, 0",
    "steal a descriptor": "438, 438, 0, 1, 0",
    "clone a process": "56, 220, 17, 0, 0, 0, 0",
    "clone with clone3": "435, 435, ctypes.create_string_buffer(88), 88",
    "clone into a user namespace": "56, 220, 0x10000011, 0, 0, 0, 0",
    "new user namespace": "272, 97, 0x10000000",
    "new mount namespace": "272, 97, 0x20000",
    "join a namespace": "308, 268, 0, 0",
    "mount": "165, 40, None, b'/', None, 0x4000 | 0x40000, None",
    "remount": "165, 40, None, b'/', None, 0x20 | 0x1000, None",
    "new mount interface": "428, 428, -100, b'/', 0",
    "unmount": "166, 39, b'/', 2",
    "pivot root": "155, 41, b'/', b'/'",
    "raise capabilities": "126, 91, b'\\x22\\x05\\x08\\x20\\0\\0\\0\\0', b'\\xff' * 24",
    "handle of a file": "303, 264, -100, b'/', ctypes.create_string_buffer(128), None, 0",
    "open by handle": "304, 265, -100, ctypes.create_string_buffer(128), 0",
    "system V shared memory": "29, 194, 0, 64 << 20, 0o1600",
    "system V queue": "68, 186, 0, 0o1600",
    "system V semaphore": "64, 190, 0, 1, 0o1600",
    "POSIX queue": "240, 180, b'breach', 0o102, 0o600, None",
    "secret memory": "447, 447, 0",
    "io_uring": "425, 425, 8, ctypes.create_string_buffer(256)",
    "BPF": "321, 280, 0, ctypes.create_string_buffer(128), 128",
    "perf": "298, 241, ctypes.create_string_buffer(128), 0, -1, -1, 0",
    "userfaultfd": "323, 282, 1",
    "keyring": "250, 219, 0, -3, 1",
    "add a key": "248, 217, b'user', b'breach', b'x', 1, -3",
    "fanotify": "300, 262, 0, 0",
    "inotify": "294, 26, 0",
    "own seccomp filter": "317, 277, 1, 0, ctypes.create_string_buffer(16)",
    "new landlock ruleset": "444, 444, None, 0, 1",
    "personality": "135, 92, 0x0040000",
    "kernel log": "103, 116, 3, ctypes.create_string_buffer(64), 64",
    "load a module": "313, 273, 0, b'', 0",
    "kexec": "246, 104, 0, 0, None, 0",
    "reboot": "169, 142, 0, 0, 0, None",
    "swap": "167, 224, b'/breach', 0",
    "accounting": "163, 89, b'/breach'",
    "ports": "173, 9999, 0, 1, 1",
    "adjust the clock": "159, 171, ctypes.create_string_buffer(256)",
    "move pages": "279, 239, os.getppid(), 0, None, None, None, 0",
    "advise another's memory": "440, 440, 0, None, 0, 4, 0",
    "dumpable": "157, 167, 4, 1, 0, 0, 0",
    "no parent-death signal": "157, 167, 1, 0, 0, 0, 0",
    "subreaper": "157, 167, 36, 1, 0, 0, 0",
}

_THREADS = """
import threading, time
threading.stack_size({stack})
started = 0
try:
    for _ in range({n}):
        threading.Thread(target=time.sleep, args=(1.2,), daemon=True).start()
        started += 1
except (RuntimeError, MemoryError):
    pass
print(started)
"""
_LOOP = "while True: pass"

_OTHERS = [
    Hostile(
        name="fork bomb",
        program="for _ in range(300):\n    attempt(lambda: os.fork() or __import__('time').sleep(9))",
        contained=refused,
    ),
    Hostile(
        name="memory bomb",
        program="kept = []\nfor i in range(400):\n    kept.append(bytearray(10 << 20))\nprint('BREACH')",
        contained=ended("memory"),
    ),
    Hostile(
        name="memory bomb, caught",
        program="kept = []\ntry:\n    while True: kept.append(bytearray(1 << 20))\n"
        "except MemoryError: print(len(kept))",
        contained=bounded(700),
    ),
    Hostile(
        name="mapped memory bomb",
        program="import mmap\nkept = []\ntry:\n"
        "    while len(kept) < 4000: kept.append(mmap.mmap(-1, 1 << 20))\n"
        "except (OSError, MemoryError): pass\nprint(len(kept))",
        contained=bounded(700),
    ),
    Hostile(
        name="array bomb",
        program="import numpy\nx = numpy.ones((40000, 40000))\nprint('BREACH', x.sum())",
        contained=ended("memory"),
    ),
    Hostile(name="endless loop", program=_LOOP, contained=ended("timeout"), slow=True),
    Hostile(
        name="endless sleep",
        program="import time\nprint('kept', end='')\ntime.sleep(60)",
        contained=said("kept", "timeout"),
        slow=True,
    ),
    Hostile(
        name="loop in C",
        program="print(7 ** (10 ** 9) % 10)",
        contained=ended("timeout", "memory"),
        slow=True,
    ),
    Hostile(
        name="endless regular expression",
        program="import re\nre.match('(a+)+b', 'a' * 60)",
        contained=ended("timeout"),
        slow=True,
    ),
    Hostile(
        name="endless stdout",
        program="while True: print('x' * 1000)",
        contained=lambda e: e.status == "output_limit" and e.truncated and len(e.stdout) == 65536,
    ),
    Hostile(
        name="endless stderr",
        program="while True: sys.stderr.write('x' * 1000)",
        contained=lambda e: e.status == "output_limit" and e.truncated and len(e.stderr) == 65536,
    ),
    Hostile(
        name="signals ignored",
        program="import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: time.sleep(0.01)",
        contained=ended("timeout"),
        slow=True,
    ),
    Hostile(
        name="descriptors closed",
        program="for fd in range(1000):\n    try: os.close(fd)\n    except OSError: pass\nwhile True: pass",
        contained=ended("timeout"),
        slow=True,
    ),
    Hostile(
        name="thread that never ends",
        program="import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        contained=ended("timeout"),
        slow=True,
    ),
    Hostile(
        name="exit hook that never ends",
        program="import atexit\n@atexit.register\ndef hook():\n    while True: pass",
        contained=ended("timeout"),
        slow=True,
    ),
    Hostile(
        name="daemon",
        program="def daemon():\n    if os.fork() == 0:\n        os.setsid()\n        os.fork()\n"
        "attempt(daemon)",
        contained=refused,
    ),
    Hostile(name="threads", program=_THREADS.format(stack=0, n=500), contained=bounded(200)),
    Hostile(name="small threads", program=_THREADS.format(stack=32768, n=5000), contained=bounded(1000)),
    Hostile(
        name="descriptor flood",
        program="n = 0\ntry:\n    while n < 10000: os.dup(1); n += 1\nexcept OSError: pass\nprint(n)",
        contained=bounded(100),
    ),
    Hostile(
        name="pipe flood",
        program="n = 0\ntry:\n    while n < 10000: os.pipe(); n += 1\nexcept OSError: pass\nprint(n)",
        contained=bounded(100),
    ),
    Hostile(
        name="disk fill",
        program="total = 0\nfor place in ('.', '$folder', '/tmp', '/dev/shm', '/var/tmp'):\n    try:\n"
        "        with open(os.path.join(place, 'arl_gym_fill'), 'wb') as file:\n"
        "            for _ in range(280): total += file.write(bytes(1 << 20))\n"
        "    except OSError: pass\nprint(total >> 20)",
        contained=said("0\n"),
    ),
    Hostile(
        name="inode fill",
        program="n = 0\nfor place in ('.', '$folder', '/tmp', '/dev/shm'):\n"
        "    try:\n        for i in range(5000):\n"
        "            open(os.path.join(place, f'arl_gym_{i}'), 'w').close(); n += 1\n"
        "    except OSError: pass\nprint(n)",
        contained=said("0\n"),
    ),
    Hostile(
        name="recursion",
        program="sys.setrecursionlimit(10**8)\ndef f(): f()\nf()",
        contained=lambda e: e.status in ("error", "memory", "killed", "timeout") and e.returncode != 0,
        slow=True,
    ),
    Hostile(
        name="deep expression",
        program="eval('(' * 10**5 + ')' * 10**5)",
        contained=lambda e: e.status in ("error", "memory", "killed", "output_limit"),
    ),
    Hostile(
        name="early exit",
        program="print('kept', end='')\nos._exit(7)",
        contained=lambda e: (e.stdout, e.status, e.returncode) == ("kept", "error", 7),
    ),
    Hostile(
        name="segmentation fault", program="ctypes.string_at(0)", contained=lambda e: e.returncode == -11
    ),
    Hostile(name="abort", program="os.abort()", contained=lambda e: e.returncode == -6),
    Hostile(
        name="killed by itself",
        program="os.kill(os.getpid(), 9)",
        contained=lambda e: (e.status, e.returncode) == ("killed", -9),
    ),
    Hostile(
        name="inherited descriptors",
        program="found = []\nfor fd in range(3, 1000):\n    try: os.fstat(fd); found.append(fd)\n"
        "    except OSError: pass\nprint(found)",
        contained=said("[]\n"),
    ),
    Hostile(
        name="host environment",
        program="print(sorted(set(os.environ) - set('PATH HOME LANG OPENBLAS_NUM_THREADS OMP_NUM_THREADS "
        "PYTHONDONTWRITEBYTECODE OPENBLAS_CORETYPE OPENBLAS_L2_SIZE LC_CTYPE'.split())))",
        contained=said("[]\n"),
    ),
    Hostile(
        name="forged result",
        program="for fd in range(3, 20):\n"
        "    for text in (b'ready', b'0', b'started', b'{\"status\": \"ok\"}'):\n"
        "        try: os.write(fd, text)\n        except OSError: pass\nos._exit(9)",
        contained=lambda e: (e.status, e.returncode) == ("error", 9),
    ),
    Hostile(
        name="raising trace hook",
        program="def hook(*_): raise ValueError\nsys.settrace(hook)\nframe = sys._getframe()\nwhile frame:\n"
        "    frame.f_trace = hook\n    frame = frame.f_back\n1 / 0",
        contained=lambda e: e.status in ("error", "killed") and e.returncode != 0,
    ),
    Hostile(
        name="raising exception hook",
        program="def hook(*_): raise ValueError\nsys.excepthook = hook\n1 / 0",
        contained=lambda e: (e.status, e.returncode) == ("error", 1),
    ),
    Hostile(
        name="streams replaced",
        program="sys.stdout = sys.stderr = sys.stdin = None\n1 / 0",
        contained=lambda e: (e.status, e.returncode) == ("error", 1),
    ),
    Hostile(
        name="builtins emptied",
        program="import builtins\nbuiltins.__dict__.clear()\n1 / 0",
        contained=lambda e: e.status in ("error", "killed") and e.returncode != 0,
    ),
    Hostile(
        name="modules emptied",
        program="sys.modules.clear()\n1 / 0",
        contained=lambda e: (e.status, e.returncode) == ("error", 1),
    ),
    Hostile(
        name="patched state",
        program="import builtins, math, sympy, numpy\nbuiltins.print = None\nmath.pi = 4\n"
        "sympy.pi = sympy.Integer(3)\nnumpy.sum = None",
        contained=ended("ok"),
    ),
    Hostile(
        name="exit hooks",
        program="import atexit\natexit.register(print, 'hook')\n"
        "class A:\n    def __del__(self): print('del')\na = A()",
        contained=said("hook\ndel\n"),
    ),
    Hostile(
        name="machine code for another system",
        program="import mmap\nif platform.machine() != 'x86_64': os._exit(1)\n"
        "code = mmap.mmap(-1, 4096, prot=7)\ncode.write(bytes.fromhex('b814000000cd80c3'))\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
        "print('BREACH', ctypes.CFUNCTYPE(ctypes.c_int)(address)())",
        contained=lambda e: e.status in ("killed", "error") and "BREACH" not in e.stdout,
    ),
    Hostile(
        name="calls of the x32 interface",
        program="print('BREACH', call(0x40000000 + 39, 9999))",
        contained=lambda e: e.status in ("killed", "error") and "BREACH" not in e.stdout,
    ),
    Hostile(
        name="library by ctypes",
        program="attempt(lambda: ctypes.CDLL('$folder/breach.so'))",
        contained=refused,
    ),
    Hostile(
        name="stack overflow in C",
        program="import threading\nthreading.stack_size(64 << 20)\nx = None\nfor _ in range(10**5): x = [x]\n"
        "repr(x)",
        contained=lambda e: e.status in ("error", "killed", "memory"),
    ),
    Hostile(name="undecodable output", program="os.write(1, bytes(range(128, 256)))", contained=ended("ok")),
    Hostile(name="surrogate", program="print(chr(0xD800))", contained=said("?\n")),
    Hostile(name="unicode", program="print('∑√π 🙂')", contained=said("∑√π 🙂\n")),
    Hostile(
        name="input without input",
        program="input()",
        contained=lambda e: e.status == "error" and e.stderr.endswith("EOFError: EOF when reading a line\n"),
    ),
    Hostile(name="input", program="print(int(input()) + 1)", contained=said("42\n"), stdin="41\n"),
    Hostile(
        name="too many digits",
        program="print(10 ** 5000)",
        contained=lambda e: e.status == "error" and "4300 digits" in e.stderr,
    ),
]

PROGRAMS: list[Hostile] = [
    *(
        Hostile(name=name, program=f"attempt(lambda: {expression})", contained=refused)
        for name, expression in _ATTEMPTS.items()
    ),
    *(
        Hostile(name=name, program=f"attempt(lambda: call({args}))", contained=refused)
        for name, args in _SYSCALLS.items()
    ),
    *_OTHERS,
]
