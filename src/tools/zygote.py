"""The warm interpreter of a sandbox: it forks once per program.

Descriptor 3 is the command socket, 4 this text, 5 its settings as JSON. Every
message on the socket carries the descriptors of one program: control, request,
stdin, stdout, stderr, then the membership files of its control groups. The
child that is cloned for it is the first process of new namespaces: it prepares
them, gives up every privilege, forks the program and waits for it. This process
never runs a line of a program, so nothing that one does can reach the next.
The text of process_memory.py stands before this one.

On control: frames of a length (4 bytes, little endian), a kind and a text.
  p  with the child's pidfd      s  the program starts
  r  its result, as JSON         e  why it could not be started
"""

import atexit
import ctypes
import gc
import importlib
import json
import linecache
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
import traceback
import types

_LIBC = ctypes.PyDLL(None, use_errno=True)
_NEW_USER, _NEW_PID, _NEW_NET, _NEW_MOUNT = 0x10000000, 0x20000000, 0x40000000, 0x00020000
_NEW_IPC, _NEW_UTS, _NEW_CGROUP = 0x08000000, 0x04000000, 0x02000000
_NAMESPACES = (_NEW_USER | _NEW_PID | _NEW_NET | _NEW_MOUNT | _NEW_IPC | _NEW_UTS | _NEW_CGROUP)
_CLONE = {"x86_64": 56, "aarch64": 220}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 2, 4, 8, 1
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_SUBREAPER, _PR_NO_NEW_PRIVS = 4, 22, 36, 38
_MACHINE = os.uname().machine
_MAX_FETCHED = 16 << 20
_MAX_TRACE = 1000
_LOOK, _SECOND_LOOK = 0.05, 0.01  # at the memory that a program holds, in seconds


class SetupError(Exception):
    """A step of the isolation failed: the program must not run."""


def checked(what, result):
    if result < 0:
        raise SetupError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def prctl(what, option, *arguments):
    values = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    values += [ctypes.c_ulong(0)] * (4 - len(values))
    checked(what, _LIBC.prctl(option, *values))


def send_frame(control, kind, text, descriptors=()):
    data = text.encode("utf-8", "replace")
    frame = struct.pack("<I", len(data)) + kind + data
    if descriptors:
        socket.send_fds(control, [frame], descriptors)
    else:
        control.sendall(frame)


def write_file(path, text):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# ---- the first process of a program's namespaces ----


def mount(kind, target, flags, data):
    checked(f"mount of {kind} on {target}", _LIBC.mount(
        kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def enter_namespaces(settings, user, group):
    write_file("/proc/self/setgroups", "deny")
    write_file("/proc/self/uid_map", f"1000 {user} 1")
    write_file("/proc/self/gid_map", f"1000 {group} 1")
    _LIBC.sethostname(b"sandbox", 7)
    mount("tmpfs", "/tmp", _NOSUID | _NODEV,
          f"mode=0700,nr_inodes=16384,size={settings['tmp_bytes']}")
    # Where the machine masks parts of its /proc, no new one may be mounted: then
    # the program has none. No process is hidden in it: each counts, whoever owns it.
    try:
        mount("proc", "/proc", _NOSUID | _NODEV | _NOEXEC, "subset=pid")
    except SetupError:
        mount("tmpfs", "/proc", _NOSUID | _NODEV | _NOEXEC | _READ_ONLY, "size=4096")


def set_limit(kind, limit):
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def set_limits(settings):
    set_limit(resource.RLIMIT_CORE, 0)
    set_limit(resource.RLIMIT_MEMLOCK, 0)
    set_limit(resource.RLIMIT_MSGQUEUE, 0)
    set_limit(resource.RLIMIT_FSIZE, settings["max_file_bytes"])
    set_limit(resource.RLIMIT_NOFILE, settings["max_open_files"])
    if settings["isolated"]:
        # Counted within the user namespace; this process is one of them.
        set_limit(resource.RLIMIT_NPROC, settings["max_processes"] + 1)


def drop_privileges(syscall_filter):
    header = struct.pack("<Ii", 0x20080522, 0)
    checked("capset", _LIBC.syscall(_CAPSET[_MACHINE], header, bytes(24)))
    prctl("no_new_privs", _PR_NO_NEW_PRIVS, 1)
    instructions = ctypes.create_string_buffer(syscall_filter, len(syscall_filter))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Program(len(syscall_filter) // 8, ctypes.addressof(instructions))
    prctl("seccomp", _PR_SET_SECCOMP, 2, ctypes.byref(program))


def put_files(files):
    for path, content in files.items():
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(bytes.fromhex(content))


def fetch_files(paths):
    """What the program could read itself: this process has its view and no more."""
    fetched, left = {}, _MAX_FETCHED
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    continue
                content = file.read(left + 1)
        except OSError:
            continue
        if len(content) <= left:
            left -= len(content)
            fetched[path] = content.hex()
    return fetched


def wait_for(program, memory_bytes):
    """Reaps everything until the program itself is gone; its return code."""
    watched = os.pidfd_open(program) if memory_bytes else None
    exceeded = False
    while True:
        pause = _SECOND_LOOK if exceeded else _LOOK
        if watched is not None and not select.select([watched], [], [], pause)[0]:
            # Twice: between a vfork and its sleep a parent looks like any other.
            before, exceeded = exceeded, ProcessMemory().exceeds(memory_bytes)
            if not (before and exceeded):
                continue
            os.kill(program, signal.SIGKILL)
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            return os.waitstatus_to_exitcode(status)


def kill_descendants():
    """Without a pid namespace: everything that has this process as an ancestor."""
    while True:
        children = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = stat_of(f"/proc/{name}")
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != b"Z":
                children.append(int(name))
        if not children:
            return
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.001)


def remove_tree(folder):
    import shutil
    shutil.rmtree(folder, ignore_errors=True)


def be_first(settings, descriptors, user, group):
    control = socket.socket(fileno=descriptors[0])
    folder = None
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        own = os.pidfd_open(os.getpid())
        send_frame(control, b"p", "", [own])
        os.close(own)
        for membership in descriptors[5:]:
            os.write(membership, b"0")
            os.close(membership)
        size = os.fstat(descriptors[1]).st_size
        request = json.loads(os.pread(descriptors[1], size, 0))
        if settings["isolated"]:
            enter_namespaces(settings, user, group)
            folder = "/tmp"
        else:
            prctl("subreaper", _PR_SET_SUBREAPER, 1)
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
            folder = tempfile.mkdtemp(prefix="pace-sandbox-")
        os.chdir(folder)
        # Files are the caller's, so they are bound by /tmp alone.
        put_files(request["files"])
        set_limits(settings)
        if settings["isolated"]:
            drop_privileges(bytes.fromhex(settings["syscall_filter"]))
        # Nothing of the program may look into this process.
        prctl("dumpable", _PR_SET_DUMPABLE, 0)
        send_frame(control, b"s", "")
        start = time.monotonic()
        program = os.fork()
        if program == 0:
            be_program(request, descriptors, folder)
        for descriptor in descriptors[1:5]:
            os.close(descriptor)
        watch = settings["watch_memory"] and os.path.exists("/proc/self")
        code = wait_for(program, request["memory_bytes"] if watch else 0)
        result = {"return_code": code, "time": time.monotonic() - start,
                  "files": fetch_files(request["fetch"])}
        if not settings["isolated"]:
            kill_descendants()
        send_frame(control, b"r", json.dumps(result))
    except (OSError, SetupError, ValueError) as error:
        send_frame(control, b"e", str(error))
    finally:
        if not settings["isolated"]:
            kill_descendants()
            if folder:
                remove_tree(folder)
        os._exit(0)


# ---- the program ----


def reseed():
    """State that every fork would otherwise share; `random` does it by itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    sympy_random = sys.modules.get("sympy.core.random")
    if sympy_random is not None:
        sympy_random.rng.seed()


def own_entries(trace):
    """The program's part of a traceback; of a very deep one its end, as Python shows it."""
    while trace is not None and trace.tb_frame.f_code.co_filename == "<zygote>":
        trace = trace.tb_next
    ahead, depth = trace, 0
    while ahead is not None:
        ahead, depth = ahead.tb_next, depth + 1
        if depth > _MAX_TRACE:
            trace = trace.tb_next
    return trace


def show_exception(error):
    trace = own_entries(error.__traceback__)
    try:
        if sys.excepthook is sys.__excepthook__:
            # The built-in one looks for the source in a file that is not there.
            traceback.print_exception(type(error), error.with_traceback(trace), trace)
        else:
            sys.excepthook(type(error), error, trace)
    except BaseException:  # out of memory, most likely
        os.write(2, type(error).__name__.encode() + b"\n")


def exit_code_of(value):
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    print(value, file=sys.stderr)
    return 1


def run_code(code, folder):
    linecache.cache["main.py"] = (len(code), None, code.splitlines(True), "main.py")
    main = types.ModuleType("__main__")
    main.__file__ = folder + "/main.py"
    main.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = main
    sys.argv = ["main.py"]
    sys.path.insert(0, folder)
    exec(compile(code, "main.py", "exec", dont_inherit=True), main.__dict__)


def finish(step, code):
    """One step of an interpreter's end; its failure must not stop the next."""
    try:
        step()
    except SystemExit as error:
        return exit_code_of(error.code)
    except BaseException as error:
        show_exception(error)
    return code


def be_program(request, descriptors, folder):
    status = 1
    try:
        os.setsid()
        prctl("dumpable", _PR_SET_DUMPABLE, 1)  # its own /proc/self is its own
        for number in range(3):
            os.dup2(descriptors[2 + number], number)
        os.closerange(3, 1 << 16)
        reseed()
        try:
            # Too little even to begin with is the program's error, not ours.
            set_limit(resource.RLIMIT_AS, request["memory_bytes"])
            run_code(request["code"], folder)
            status = 0
        except SystemExit as error:
            status = exit_code_of(error.code)
        except BaseException as error:
            show_exception(error)
        # What the interpreter does at its end, but for freeing all memory.
        for step in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush):
            status = finish(step, status)
        sys.stderr.flush()
    finally:
        os._exit(status)


# ---- the warm interpreter ----


def clone(flags):
    return checked("clone of a program's first process",
                   _LIBC.syscall(_CLONE[_MACHINE], ctypes.c_ulong(flags | signal.SIGCHLD),
                                 None, None, None, None))


def serve(command, settings):
    user, group = os.geteuid(), os.getegid()
    flags = _NAMESPACES if settings["isolated"] else 0
    while True:
        message, descriptors, _, _ = socket.recv_fds(command, 16, 16)
        if not message:
            return
        try:
            child = clone(flags)
            if child == 0:
                command.close()
                be_first(settings, descriptors, user, group)
        except SetupError as error:
            with socket.socket(fileno=os.dup(descriptors[0])) as control:
                send_frame(control, b"e", str(error))
        for descriptor in descriptors:
            os.close(descriptor)


def main():
    command = socket.socket(fileno=3)
    settings = json.loads(os.pread(5, os.fstat(5).st_size, 0))
    os.close(4)
    os.close(5)
    loaded = []
    for name in settings["modules"]:
        try:
            importlib.import_module(name)
            loaded.append(name)
        except Exception:
            pass
    for name in ("OPENBLAS_NUM_THREADS", "PYTHONHASHSEED"):
        os.environ.pop(name, None)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    linecache.clearcache()
    gc.collect()
    gc.freeze()
    command.sendall(json.dumps({"modules": loaded}).encode())
    serve(command, settings)


main()
