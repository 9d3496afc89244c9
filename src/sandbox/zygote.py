"""The warm interpreter of a sandbox: it forks once per program.

Descriptor 3 is the command socket, 4 this text, 5 its settings as JSON. Every
message on the socket names a slot and carries the descriptors of one program:
control, request, stdin, stdout, stderr; then, with control groups, the file of
the slot's memory events and the membership files of its groups. The child that
is cloned for it is the first process of new namespaces: it prepares them, gives
up every privilege, forks the program and waits for it. This process never runs a
line of a program, so nothing that one does can reach the next. The texts of
process_memory.py and program_bounds.py stand before this one.

To enter a control group takes long, and makes all forks of the machine wait; to
be born in one takes nothing. So each slot has a child of this process that has
entered the slot's groups and clones the programs' first processes there.

On control: frames of a length (4 bytes, little endian), a kind and a text.
  p  with the child's pidfd      s  the program starts
  r  its result, as JSON         e  why it could not be started
After s there is no e: what happens then is the program's end.
"""

import atexit
import ctypes
import gc
import importlib
import json
import linecache
import os
import resource
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

_NEW_USER, _NEW_PID, _NEW_NET, _NEW_MOUNT = 0x10000000, 0x20000000, 0x40000000, 0x00020000
_NEW_IPC, _NEW_UTS, _NEW_CGROUP = 0x08000000, 0x04000000, 0x02000000
_NAMESPACES = (_NEW_USER | _NEW_PID | _NEW_NET | _NEW_MOUNT | _NEW_IPC | _NEW_UTS | _NEW_CGROUP)
_CLONE = {"x86_64": 56, "aarch64": 220}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 2, 4, 8, 1
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_SUBREAPER, _PR_NO_NEW_PRIVS = 4, 22, 36, 38
_OPENAT2 = 437
_BENEATH, _NO_MAGIC_LINKS, _NO_OTHER_MOUNT = 8, 2, 1
_NUM_STREAMS = 5  # descriptors that every program has
_MAX_FETCHED = 16 << 20
_MAX_TRACE = 1000
_MAX_REAPED = 64  # in a row, before the bounds are looked at again
_LOOK, _LATE = 0.05, 0.15  # at the bounds of a program, in seconds


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


def drop_privileges():
    header = struct.pack("<Ii", 0x20080522, 0)
    checked("capset", _LIBC.syscall(_CAPSET[_MACHINE], header, bytes(24)))
    prctl("no_new_privs", _PR_NO_NEW_PRIVS, 1)


def install_filter(syscall_filter):
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


def open_inside(path):
    """A file of the working folder: no link leads out of it, so that nothing is read that
    this process sees and the program does not."""
    how = struct.pack("<QQQ", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0,
                      _BENEATH | _NO_MAGIC_LINKS | _NO_OTHER_MOUNT)
    descriptor = _LIBC.syscall(_OPENAT2, ctypes.c_long(-100), os.fsencode(path), how,
                               ctypes.c_ulong(len(how)))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), path)
    return descriptor


def fetch_files(paths):
    fetched, left = {}, _MAX_FETCHED
    for path in paths:
        try:
            descriptor = open_inside(path)
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


def bounds_of(settings, request, events):
    """What this process has to look after."""
    bounds = []
    has_proc = settings["isolated"] and os.path.exists("/proc/self")
    if events is not None:
        bounds.append(GroupMemory(events))
    elif has_proc:
        bounds.append(WatchedMemory(request["memory_bytes"], settings["socket_bytes"]))
    if has_proc and not settings["processor_group"]:
        bounds.append(SharedProcessor())
    return bounds


def reap(program):
    """Takes in processes that have ended; the program's return code once it is among them,
    and whether there may be more."""
    for _ in range(_MAX_REAPED):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            return os.waitstatus_to_exitcode(status), False
        if pid == 0:
            return None, False
    return None, True


def wait_for(program, bounds):
    """Takes in whatever ends until the program itself does; its return code.
    REQUIRES: SIGCHLD is blocked."""
    due, more = time.monotonic() + _LOOK, False
    while True:
        pause = 0 if more else max(due - time.monotonic(), 0) if bounds else 3600
        signal.sigtimedwait([signal.SIGCHLD], pause)
        code, more = reap(program)
        if code is not None:
            return code
        now = time.monotonic()
        if bounds and now >= due:
            if any([bound.look(now > due + _LATE) for bound in bounds]):
                os.kill(-1, signal.SIGKILL)
            due = time.monotonic() + _LOOK


def end_all(isolated):
    """Ends what the program left."""
    if not isolated:
        kill_descendants()
        return
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_of(program, bounds, settings, request):
    """How the program ended. What goes wrong here does so because of what it did."""
    start = time.monotonic()
    code, files = -signal.SIGKILL, {}
    try:
        code = wait_for(program, bounds)
        duration = time.monotonic() - start
        end_all(settings["isolated"])
        files = fetch_files(request["fetch"])
    except Exception:
        duration = time.monotonic() - start
        end_all(settings["isolated"])
    return {"return_code": code, "time": duration, "files": files}


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


def prepare(settings, request, user, group):
    """Everything of the isolation but the filter; the working folder."""
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
        drop_privileges()
    # Nothing of the program may look into this process.
    prctl("dumpable", _PR_SET_DUMPABLE, 0)
    return folder


def fork_program(settings, request, descriptors, folder):
    """The program's process and the gate that it waits at, ready to begin."""
    gate, other = socket.socketpair()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    program = os.fork()
    if program == 0:
        gate.close()
        be_program(settings, request, descriptors, folder, other)
    other.close()
    said = gate.recv(1000).decode("utf-8", "replace")
    if said != "ready":
        raise SetupError(said or "the program's process died")
    for descriptor in descriptors[1:_NUM_STREAMS]:
        os.close(descriptor)
    return program, gate


def be_first(settings, descriptors, user, group):
    control = socket.socket(fileno=descriptors[0])
    folder = None
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        own = os.pidfd_open(os.getpid())
        send_frame(control, b"p", "", [own])
        os.close(own)
        size = os.fstat(descriptors[1]).st_size
        request = json.loads(os.pread(descriptors[1], size, 0))
        folder = prepare(settings, request, user, group)
        events = descriptors[_NUM_STREAMS] if len(descriptors) > _NUM_STREAMS else None
        bounds = bounds_of(settings, request, events)
        program, gate = fork_program(settings, request, descriptors, folder)
        send_frame(control, b"s", "")
        gate.close()
        result = end_of(program, bounds, settings, request)
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
        # As in C: what does not fit a long is -1.
        return value & 0xFF if -(1 << 63) <= value < 1 << 63 else 0xFF
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


def become_program(settings, descriptors):
    """What is left of the isolation, in the program's own process."""
    os.setsid()
    prctl("dumpable", _PR_SET_DUMPABLE, 1)  # its own /proc/self is its own
    for number in range(3):
        os.dup2(descriptors[2 + number], number)
    try:
        # Where memory runs out, this process goes before any of ours.
        write_file("/proc/self/oom_score_adj", "1000")
    except OSError:
        pass
    if settings["isolated"]:
        install_filter(bytes.fromhex(settings["syscall_filter"]))


def be_program(settings, request, descriptors, folder, gate):
    status = 1
    try:
        try:
            become_program(settings, descriptors)
        except (OSError, SetupError) as error:
            gate.sendall(str(error).encode())
            return
        gate.sendall(b"ready")
        gate.recv(1)  # its end is the sign to begin
        gate.detach()
        os.closerange(3, 1 << 16)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
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


def launch(settings, descriptors, others):
    """Starts a program's first process, which closes `others`."""
    user, group = os.geteuid(), os.getegid()  # the child is nobody until it has mapped them
    child = clone(_NAMESPACES if settings["isolated"] else 0)
    if child == 0:
        for other in others:
            other.close()
        be_first(settings, descriptors, user, group)


def be_seat(settings, memberships, requests):
    """Enters a slot's control groups and starts the programs that come."""
    failure = None

    def start():
        if failure is not None:
            raise SetupError(f"control group: {failure}")
        launch(settings, descriptors, [requests])

    try:
        for membership in memberships:
            os.write(membership, b"0")
            os.close(membership)
    except OSError as error:
        failure = error
    try:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, 16, 16)
            if not message:
                break
            answer(descriptors, start)
    finally:
        os._exit(0)


class Seats:
    """The children that have entered the groups of their slots."""

    def __init__(self, settings, command):
        self.settings = settings
        self.command = command
        self.sockets = {}

    def start(self, slot, memberships):
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            for each in (self.command, ours, *self.sockets.values()):
                each.close()
            be_seat(self.settings, memberships, theirs)
        theirs.close()
        self.sockets[slot] = ours

    def launch(self, slot, descriptors):
        streams, memberships = descriptors[:_NUM_STREAMS + 1], descriptors[_NUM_STREAMS + 1:]
        if slot in self.sockets:
            try:
                socket.send_fds(self.sockets[slot], [b"run"], streams)
                return
            except OSError:
                # It died, as when the kernel ran out of memory for its groups.
                self.sockets.pop(slot).close()
        self.start(slot, memberships)
        socket.send_fds(self.sockets[slot], [b"run"], streams)


def answer(descriptors, start):
    """Starts a program, or says why not; closes its descriptors either way."""
    try:
        start()
    except (OSError, SetupError) as error:
        with socket.socket(fileno=os.dup(descriptors[0])) as control:
            send_frame(control, b"e", str(error))
    for descriptor in descriptors:
        os.close(descriptor)


def serve(command, settings):
    seats = Seats(settings, command)
    while True:
        message, descriptors, _, _ = socket.recv_fds(command, 16, 16)
        if not message:
            return
        if len(descriptors) > _NUM_STREAMS:
            answer(descriptors, lambda: seats.launch(message, descriptors))
        else:
            answer(descriptors, lambda: launch(settings, descriptors, [command]))


def main():
    command = socket.socket(fileno=3)
    settings = json.loads(os.pread(5, os.fstat(5).st_size, 0))
    settings["socket_bytes"] = bytes_per_socket()
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
