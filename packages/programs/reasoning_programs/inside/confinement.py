"""Restrict a process before it runs a program: its capabilities, memory, files, and most system calls.

A system call that is not in `_CALLS` is denied (EPERM). A few others are allowed depending on their arguments:

    clone         threads only: no new process, no new namespace        kill, tgkill   the process itself only
    ioctl         questions about a descriptor only                     socketpair     of the machine itself only
    prctl         names of threads only                                 prlimit64      of the process itself only

So a program is a single process. It cannot fork, start another program, open a socket, trace, see or signal another
process, or mount. System call numbers: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h (aarch64). BPF: filter.h and seccomp.h of include/uapi/linux.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct

_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7
_ARCHITECTURES = {"x86_64": (_X86_64, 0), "aarch64": (_AARCH64, 1)}
"""Machine → its audit number, and its column in `_CALLS`."""

_CALLS = """
read 0 63,write 1 64,open 2 -,close 3 57,stat 4 -,fstat 5 80,lstat 6 -,poll 7 -,lseek 8 62,mmap 9 222,
mprotect 10 226,munmap 11 215,brk 12 214,rt_sigaction 13 134,rt_sigprocmask 14 135,rt_sigreturn 15 139,
pread64 17 67,pwrite64 18 68,readv 19 65,writev 20 66,access 21 -,pipe 22 -,select 23 -,sched_yield 24 124,
mremap 25 216,msync 26 227,mincore 27 232,madvise 28 233,dup 32 23,dup2 33 -,pause 34 -,nanosleep 35 101,
getitimer 36 102,alarm 37 -,setitimer 38 103,getpid 39 172,sendfile 40 71,sendto 44 206,recvfrom 45 207,
sendmsg 46 211,recvmsg 47 212,shutdown 48 210,getsockname 51 204,getpeername 52 205,setsockopt 54 208,
getsockopt 55 209,exit 60 93,uname 63 160,fcntl 72 25,flock 73 32,fsync 74 82,fdatasync 75 83,truncate 76 45,
ftruncate 77 46,getdents 78 -,getcwd 79 17,chdir 80 49,fchdir 81 50,rename 82 -,mkdir 83 -,rmdir 84 -,creat 85 -,
link 86 -,unlink 87 -,symlink 88 -,readlink 89 -,chmod 90 -,fchmod 91 52,umask 95 166,gettimeofday 96 169,
getrlimit 97 163,getrusage 98 165,sysinfo 99 179,times 100 153,getuid 102 174,getgid 104 176,geteuid 107 175,
getegid 108 177,getppid 110 173,getpgrp 111 -,getgroups 115 158,getpgid 121 155,getsid 124 156,capget 125 90,
rt_sigpending 127 136,rt_sigtimedwait 128 137,sigaltstack 131 132,statfs 137 43,fstatfs 138 44,getpriority 140 141,
sched_getparam 143 121,sched_getscheduler 145 120,arch_prctl 158 -,gettid 186 178,time 201 -,futex 202 98,
sched_getaffinity 204 123,epoll_create 213 -,getdents64 217 61,set_tid_address 218 96,restart_syscall 219 128,
clock_gettime 228 113,clock_getres 229 114,clock_nanosleep 230 115,exit_group 231 94,epoll_wait 232 -,epoll_ctl 233 21,
openat 257 56,mkdirat 258 34,newfstatat 262 79,unlinkat 263 35,renameat 264 38,linkat 265 37,symlinkat 266 36,
readlinkat 267 78,fchmodat 268 53,faccessat 269 48,pselect6 270 72,ppoll 271 73,set_robust_list 273 99,
get_robust_list 274 100,utimensat 280 88,epoll_pwait 281 22,timerfd_create 283 85,eventfd 284 -,timerfd_settime 286 86,
timerfd_gettime 287 87,eventfd2 290 19,epoll_create1 291 20,dup3 292 24,pipe2 293 59,getcpu 309 168,getrandom 318 278,
renameat2 316 276,membarrier 324 283,copy_file_range 326 285,statx 332 291,rseq 334 293,close_range 436 436,
faccessat2 439 439
"""
"""Name, number on x86_64 and number on aarch64 of each system call that is allowed with any arguments."""

_CLONE_THREAD = 0x00010000
"""The flag of clone that asks for a thread, not a process."""
_PRCTL_NAMES = (15, 16, 0x53564D41)  # PR_SET_NAME, PR_GET_NAME, PR_SET_VMA (names of memory, which glibc gives)
_QUESTIONS = (0x5401, 0x541B, 0x5450, 0x5451, 0x5413, 0x5421)  # TCGETS FIONREAD FIONCLEX FIOCLEX TIOCGWINSZ FIONBIO
_AF_UNIX = 1

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026

_LIBC = ctypes.CDLL(None, use_errno=True)
"""The C library."""


def supported() -> bool:
    """Whether the system call filter supports this machine."""
    return platform.machine() in _ARCHITECTURES


def seccomp_filter(pid: int, *, supervises: bool = False) -> bytes:
    """The system call filter for the process `pid`, as BPF instructions of eight bytes each.

    supervises: whether the process may kill and wait for other processes.
    """
    audit, column = _ARCHITECTURES[platform.machine()]
    # The architecture first: i386 calls, available to any x86_64 program, have different numbers for the same
    # operations.
    code = [_step(_LOAD, 4), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, 0)]
    for entry in _CALLS.replace("\n", "").split(","):
        number = entry.split()[1 + column]
        if number != "-":
            code += [_step(_EQUAL, int(number), 0, 1), _step(_RETURN, _ALLOW)]
    for numbers in ((62, 129), (61, 260)) if supervises else ():  # kill, wait4
        code += [_step(_EQUAL, numbers[column], 0, 1), _step(_RETURN, _ALLOW)]
    # A filter cannot see the flags of clone3, which are in memory; on ENOSYS, glibc falls back to clone.
    code += [_step(_EQUAL, 435, 0, 1), _step(_RETURN, _ENOSYS)]
    # Call numbers, comparison, argument number, and the values, one of which must match.
    checks = (
        ((56, 220), _ANY_BIT, 0, (_CLONE_THREAD,)),  # clone
        ((62, 129), _EQUAL, 0, (pid,)),  # kill
        ((234, 131), _EQUAL, 0, (pid,)),  # tgkill
        ((16, 29), _EQUAL, 1, _QUESTIONS),  # ioctl
        ((53, 199), _EQUAL, 0, (_AF_UNIX,)),  # socketpair
        ((157, 167), _EQUAL, 0, _PRCTL_NAMES),  # prctl
        ((302, 261), _EQUAL, 0, (0, pid)),  # prlimit64
    )
    for numbers, test, argument, values in checks:
        # Offset of the argument's low 32 bits (both machines are little-endian); the kernel reads only these bits of
        # the arguments.
        block = [_step(_LOAD, 16 + 8 * argument)]
        for value in values:
            block += [_step(test, value, 0, 1), _step(_RETURN, _ALLOW)]
        # A jump skips at most 255 instructions, which no block here reaches.
        code += [_step(_EQUAL, numbers[column], 0, len(block) + 1), *block, _step(_RETURN, _EPERM)]
    # Any other call is denied, which does not kill the process: libraries then fall back from a newer call to an older
    # one.
    return b"".join([*code, _step(_RETURN, _EPERM)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One BPF instruction. if_true, if_false: how many instructions a comparison skips."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library and return its result. Raises `OSError` if the result is -1."""
    result = int(getattr(_LIBC, name)(*arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def own_name_space() -> None:
    """Give this process its own file systems: /proc is empty; /tmp is empty, writable, and disappears with the process.

    The caller has made the process the first in a process namespace, so that it sees no other process.
    """
    call("unshare", 0x00020000)  # CLONE_NEWNS
    # Private first, or the mounts below would also appear outside this namespace.
    call("mount", b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    call("mount", b"tmpfs", b"/proc", b"tmpfs", 0xF, b"size=4k,nr_inodes=2")  # read-only, nosuid, nodev, noexec
    call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0x6, b"size=64m,nr_inodes=4096")  # nosuid, nodev


def limit(memory: int, cpu_seconds: int, file_bytes: int, threads: int) -> None:
    """Set the hard limits of this process: bytes of memory, CPU seconds, bytes of a file, threads of its user."""
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NPROC, threads),
        (resource.RLIMIT_AS, memory),
    ):
        # Without privileges a hard limit can be lowered, never raised.
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def leave_root(user: int) -> None:
    """Switch to the user `user`, who owns nothing, if this process is root, as on a server that runs programs as
    root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def hide() -> None:
    """Prevent other processes of the same user from reading this process's memory or tracing it."""
    call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def confine(*, supervises: bool = False) -> None:
    """Permanently drop all capabilities, and all system calls except those that the filter allows.

    supervises: also allow killing and waiting for other processes. Raises `OSError`.
    """
    # Version 3 of the capability header: two records of three words, hence 24 bytes.
    header, none = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    # An unprivileged process may install a filter only after this call; a setuid program then grants no privileges.
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    # `capset` must precede the filter, which denies it.
    call("capset", header, none)
    code = seccomp_filter(os.getpid(), supervises=supervises)
    program = _Program(len(code) // 8, code)
    call("prctl", 22, 2, ctypes.byref(program), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
