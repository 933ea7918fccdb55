"""Stops or kills one thread of this process from outside, as nothing within it could."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["killed", "standing_still", "twin_thread"]

_PR_SET_PTRACER = 0x59616D61
_ATTACH, _DETACH, _GETREGS, _SETREGS = 16, 17, 12, 13
_WALL = 0x4000_0000
_EXIT = 60
# Of the registers in `user_regs_struct`, by their place.
_RAX, _ORIG_RAX, _RIP, _REGISTERS = 10, 15, 16, 27


def twin_thread() -> int:
    """The thread that steps the twin that was opened last."""
    tasks = Path("/proc/self/task").iterdir()
    return max(int(task.name) for task in tasks if (task / "comm").read_text() == "cuelight-twin\n")


@contextlib.contextmanager
def standing_still(thread: int) -> Iterator[None]:
    """Let a thread stand still meanwhile."""
    with _tracer(thread, "stop"):
        yield


def killed(thread: int) -> None:
    """Make a thread that sleeps in a system call exit there and then."""
    with _tracer(thread, "kill"):
        pass


@contextlib.contextmanager
def _tracer(thread: int, what: str) -> Iterator[None]:
    if platform.machine() != "x86_64":
        pytest.skip("threads are stopped by way of x86-64 registers")
    command = [sys.executable, __file__, str(thread), what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdin
        assert tracer.stdout
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, tracer.pid, 0, 0, 0)
        tracer.stdin.write("go\n")
        tracer.stdin.flush()
        if (said := tracer.stdout.readline().strip()) != "done":
            pytest.skip(f"this machine lets no process trace another: {said}")
        yield
        tracer.stdin.close()
        assert tracer.wait(30) == 0


def _trace(thread: int, what: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    sys.stdin.readline()
    if libc.ptrace(_ATTACH, thread, None, None):
        print(f"errno {ctypes.get_errno()}", flush=True)
        return 0
    libc.waitpid(thread, ctypes.byref(ctypes.c_int()), _WALL)
    if what == "kill":
        registers = (ctypes.c_uint64 * _REGISTERS)()
        libc.ptrace(_GETREGS, thread, None, ctypes.byref(registers))
        # Back to the instruction that made the call, to make another one.
        registers[_RIP] -= 2
        registers[_RAX], registers[_ORIG_RAX] = _EXIT, 0xFFFF_FFFF_FFFF_FFFF
        libc.ptrace(_SETREGS, thread, None, ctypes.byref(registers))
        libc.ptrace(_DETACH, thread, None, None)
        print("done", flush=True)
        sys.stdin.readline()
        return 0
    print("done", flush=True)
    sys.stdin.readline()
    libc.ptrace(_DETACH, thread, None, None)
    return 0


if __name__ == "__main__":
    sys.exit(_trace(int(sys.argv[1]), sys.argv[2]))
