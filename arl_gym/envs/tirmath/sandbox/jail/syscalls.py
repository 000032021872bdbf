"""The system calls that a program may make, with their numbers on x86_64 and aarch64 (`-`: not there).

A list of what is allowed, not of what is forbidden: what the kernel learns later is refused. None of them
starts a process, opens a socket, changes a file, or reaches another process; where that depends on an
argument, `seccomp.py` checks it, and where on a path, the tier does.
"""

_TABLE = """
read 0 63            write 1 64            readv 19 65           writev 20 66        pread64 17 67
pwrite64 18 68       lseek 8 62            open 2 -              openat 257 56       close 3 57
close_range 436 436  stat 4 -              fstat 5 80            lstat 6 -           newfstatat 262 79
statx 332 291        access 21 -           faccessat 269 48      faccessat2 439 439  getcwd 79 17
chdir 80 49          getdents64 217 61     readlink 89 -         readlinkat 267 78
mmap 9 222           munmap 11 215         mremap 25 216         mprotect 10 226     madvise 28 233
brk 12 214
rt_sigaction 13 134  rt_sigprocmask 14 135 rt_sigreturn 15 139   rt_sigpending 127 136
rt_sigtimedwait 128 137                    rt_sigsuspend 130 133 sigaltstack 131 132 pause 34 -
alarm 37 -           setitimer 38 103      getitimer 36 102      restart_syscall 219 128
kill 62 129          tkill 200 130         tgkill 234 131
clone 56 220         clone3 435 435        futex 202 98          set_robust_list 273 99
rseq 334 293         membarrier 324 283    exit 60 93            exit_group 231 94
sched_yield 24 124   sched_getaffinity 204 123                   getcpu 309 168
getpid 39 172        getppid 110 173       gettid 186 178        getuid 102 174      geteuid 107 175
getgid 104 176       getegid 108 177       getgroups 115 158     getresuid 118 148   getresgid 120 150
getpgid 121 155      getpgrp 111 -         getsid 124 156
getrandom 318 278    uname 63 160          sysinfo 99 179        times 100 153       getrusage 98 165
gettimeofday 96 169  time 201 -            clock_gettime 228 113 clock_getres 229 114
nanosleep 35 101     clock_nanosleep 230 115
getrlimit 97 163     setrlimit 160 164     prlimit64 302 261     prctl 157 167
poll 7 -             ppoll 271 73          select 23 -           pselect6 270 72
epoll_create 213 -   epoll_create1 291 20  epoll_ctl 233 21      epoll_wait 232 -    epoll_pwait 281 22
eventfd2 290 19      pipe 22 -             pipe2 293 59          dup 32 23           dup2 33 -
dup3 292 24          fcntl 72 25           ioctl 16 29
socketpair 53 199    sendto 44 206         recvfrom 45 207       shutdown 48 210
getsockopt 55 209    getsockname 51 204    getpeername 52 205
"""


def _parse(table: str) -> dict[str, dict[str, int]]:
    words = table.split()
    rows = list(zip(words[::3], words[1::3], words[2::3], strict=True))
    return {
        "x86_64": {name: int(x86) for name, x86, _ in rows},
        "aarch64": {name: int(arm) for name, _, arm in rows if arm != "-"},
    }


ALLOWED = _parse(_TABLE)
"""Numbers by name, by architecture."""
