#include "tools/hostile_programs.h"

namespace pace {

// Sizes are for a limit of 192 MiB of memory, 8 MiB of /tmp, 4 MiB of a file and 40
// processes.
std::vector<HostileProgram> GreedyPrograms() {
  return {
      {"fork bomb", HostileEnd::kTimeLimit, R"py(
while True:
    try: os.fork()
    except OSError: pass
)py"},
      {"fork bomb of sessions", HostileEnd::kTimeLimit, R"py(
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
)py"},
      {"spawn bomb", HostileEnd::kTimeLimit, R"py(
while True:
    try: os.posix_spawn('/bin/sleep', ['sleep', '60'], {})
    except OSError: pass
)py"},
      {"thread bomb", HostileEnd::kHeld, R"py(
threading.stack_size(1 << 18)
count = 0
try:
    while count < 1000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError: pass
print('held' if count < 40 else count, flush=True)
os._exit(0)
)py"},
      {"processes are counted", HostileEnd::kHeld, R"py(
count = 0
try:
    while count < 100:
        if os.fork() == 0: time.sleep(60)
        count += 1
except OSError: print('held' if count == 39 else count)
)py"},
      {"orphans are taken in", HostileEnd::kHeld, R"py(
for round in range(60):
    for attempt in range(500):
        try:
            child = os.fork()
            break
        except BlockingIOError: time.sleep(0.01)  # until process 1 has run
    else: sys.exit('orphans are not taken in')
    if child == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
print('held')
)py"},
      {"daemons", HostileEnd::kHeld, R"py(
for each in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            time.sleep(600)
        os._exit(0)
print('held')
)py"},
      {"a daemon that holds the output", HostileEnd::kHeld, R"py(
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
    os._exit(0)
print('held')
)py"},
      {"stopping itself", HostileEnd::kTimeLimit, "os.kill(os.getpid(), signal.SIGSTOP)"},
      {"stopping everything", HostileEnd::kTimeLimit, R"py(
for each in range(3):
    if os.fork() == 0: time.sleep(60)
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
)py"},
      {"signals blocked", HostileEnd::kTimeLimit, R"py(
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass
)py"},
      {"signals ignored", HostileEnd::kTimeLimit, R"py(
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
)py"},
      {"timers", HostileEnd::kTimeLimit, R"py(
signal.signal(signal.SIGALRM, lambda *ignored: None)
signal.setitimer(signal.ITIMER_REAL, 0.00001, 0.00001)
while True: pass
)py"},
      {"a shell that never ends", HostileEnd::kTimeLimit,
       "os.execv('/bin/sh', ['sh', '-c', 'while :; do :; done'])"},
      {"a power that takes for ever", HostileEnd::kTimeLimit, "9 ** 9 ** 9 % 7"},
      {"a pattern that takes for ever", HostileEnd::kTimeLimit,
       "import re\nre.match('(a+)+b', 'a' * 60)"},
      {"output without end", HostileEnd::kTimeLimit, R"py(
while True:
    print('x' * 1000)
    print('y' * 1000, file=sys.stderr)
)py"},
      {"output of many processes", HostileEnd::kTimeLimit, R"py(
for each in range(8):
    if os.fork() == 0: break
while True: os.write(1, bytes(range(256)) * 256)
)py"},
      {"output of odd bytes", HostileEnd::kCode, R"py(
os.write(1, b'\0\xff\xfe\r\n' * 1000)
os.write(2, b'\x1b[2J\0\xc0\x80')
sys.exit(7)
)py",
       7},
      {"no descriptors left", HostileEnd::kCode, "os.closerange(0, 1 << 16)\nos._exit(3)", 3},
      {"a full output", HostileEnd::kAny,
       "os.dup2(os.open('/dev/full', os.O_WRONLY), 1)\nprint('x', flush=True)"},
      {"exit codes beyond C", HostileEnd::kCode, "sys.exit(10 ** 100)", 255},
      {"exit codes below zero", HostileEnd::kCode, "sys.exit(-(10 ** 100))", 255},
      {"a negative exit code", HostileEnd::kCode, "sys.exit(-1)", 255},
      {"a large exit code", HostileEnd::kCode, "sys.exit(259)", 3},
      {"abort", HostileEnd::kCode, "os.abort()", -6},
      {"a fault", HostileEnd::kCode, "ctypes.string_at(0)", -11},
      {"killing itself", HostileEnd::kKilled, "os.kill(os.getpid(), signal.SIGKILL)"},
      {"killing everything", HostileEnd::kAny, "os.kill(-1, signal.SIGKILL)"},
      {"an exception that cannot be shown", HostileEnd::kError, R"py(
class Bad(Exception):
    def __str__(self): raise self
sys.excepthook = None
raise Bad()
)py"},
      {"deep recursion", HostileEnd::kAny, R"py(
sys.setrecursionlimit(10 ** 9)
def deeper(): return deeper()
deeper()
)py"},
      {"deep nesting", HostileEnd::kAny, "eval('(' * 100000 + ')' * 100000)"},
      {"source beyond memory", HostileEnd::kAny, "exec('x = ' + '[' * 90 + '0,' * 30000000)"},
      {"bytes of /tmp", HostileEnd::kHeld, R"py(
total = 0
try:
    for number in range(1000):
        file = os.open(f'{number}', os.O_CREAT | os.O_WRONLY)
        for part in range(2): total += os.write(file, bytes(1 << 20))
        os.close(file)
except OSError as error: print('held' if total <= 8 << 20 and error.errno == 28 else total)
)py"},
      {"bytes of deleted files", HostileEnd::kHeld, R"py(
total, held = 0, []
try:
    for number in range(100):
        held.append(os.open('gone', os.O_CREAT | os.O_WRONLY))
        os.remove('gone')
        for part in range(2): total += os.write(held[-1], bytes(1 << 20))
except OSError as error: print('held' if total <= 8 << 20 and error.errno == 28 else total)
)py"},
      {"bytes of /dev/shm", HostileEnd::kHeld, R"py(
total = 0
try:
    for number in range(100):
        file = os.open(f'/dev/shm/{number}', os.O_CREAT | os.O_WRONLY)
        for part in range(2): total += os.write(file, bytes(1 << 20))
except OSError as error: print('held' if total <= 8 << 20 and error.errno == 28 else total)
)py"},
      {"files without content", HostileEnd::kHeld, R"py(
count = 0
try:
    while count < 20000:
        os.close(os.open(f'{count}', os.O_CREAT))
        count += 1
except OSError as error: print('held' if error.errno == 28 else error)
)py"},
      {"one large file", HostileEnd::kHeld, R"py(
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = os.open('large', os.O_CREAT | os.O_RDWR)
refuse("os.ftruncate(file, 5 << 20)", "os.pwrite(file, b'x', 5 << 20)",
       "os.posix_fallocate(file, 0, 5 << 20)")
)py"},
      {"descriptors", HostileEnd::kHeld, R"py(
import select
count = 0
try:
    while count < 10000:
        (select.epoll, os.pipe, socket.socketpair)[count % 3]()
        kept = globals().setdefault('kept', [])
        kept.append(os.open('/dev/null', os.O_RDONLY))
        count += 1
except OSError as error: print('held' if error.errno == 24 and count < 256 else error)
)py"},
      {"limits raised", HostileEnd::kHeld, R"py(
for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE,
             resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
    soft, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
        print('WENT THROUGH:', kind)
    except (OSError, ValueError): pass
print('held')
)py"},
      {"memory locked", HostileEnd::kHeld, R"py(
import mmap
area = mmap.mmap(-1, 1 << 20)
refuse("None if libc.mlockall(3) == 0 else os.stat('/refused')",
       "None if libc.mlock(ctypes.addressof(ctypes.c_char.from_buffer(area)), 4096) == 0 "
       "else os.stat('/refused')")
)py"},
      {"memory of one process", HostileEnd::kError, R"py(
held = []
while True: held.append(bytearray(1 << 20))
)py"},
      {"a text beyond memory", HostileEnd::kError, "'x' * 10 ** 12"},
      {"memory of a child without end", HostileEnd::kAny, R"py(
if os.fork() == 0:
    held = []
    while True: held.append(bytearray(1 << 20))
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
)py"},
      {"memory of a copy whose parent sleeps", HostileEnd::kHeld, R"py(
refuse("call('clone', 0x4000 | 17, 0, 0, 0, 0)", "call('clone', 0x4000 | 0x200 | 17, 0, 0, 0, 0)")
)py"},
      {"buffers of sockets made large", HostileEnd::kHeld, R"py(
a, b = socket.socketpair()
refuse("a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)",
       "b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)",
       "a.setsockopt(socket.SOL_SOCKET, 32, 4 << 20)")
)py"},
  };
}

std::vector<HostileProgram> HoardingPrograms() {
  return {
      {"memory of many processes", HostileEnd::kKilled, "hoard(lambda: b'x' * (60 << 20))"},
      {"shared memory", HostileEnd::kKilled, R"py(
import mmap
def take():
    held = mmap.mmap(-1, 60 << 20)
    for page in range(0, 60 << 20, 4096): held[page] = 1
    return held
hoard(take)
)py"},
      {"memory of processes that hide", HostileEnd::kKilled, R"py(
def take():
    libc.prctl(4, 0, 0, 0, 0)  # not dumpable
    return b'x' * (60 << 20)
hoard(take)
)py"},
      {"memory of processes without a parent", HostileEnd::kKilled, R"py(
def take():
    if os.fork() != 0: os._exit(0)
    return b'x' * (60 << 20)
hoard(take)
)py"},
      {"memory that was shared", HostileEnd::kKilled, R"py(
common = bytearray(b'x' * (60 << 20))
def take():
    for page in range(0, len(common), 4096): common[page] = 2
hoard(take)
)py"},
      {"memory of stopped processes", HostileEnd::kKilled, R"py(
def take():
    held = b'x' * (60 << 20)
    os.write(writing, b'.')
    os.kill(os.getpid(), signal.SIGSTOP)
hoard(take)
)py"},
      {"memory of processes that spin in sessions of their own", HostileEnd::kKilled, R"py(
def take():
    os.setsid()
    held = bytearray(20 << 20)
    while True:
        for page in range(0, len(held), 4096): held[page] = 1
hoard(take, 30)
)py"},
      {"memory in steps of processes that come and go", HostileEnd::kKilled, R"py(
def take():
    held = [bytearray(10 << 20)]
    for round in range(1000):
        if os.fork() != 0: os._exit(0)
        if len(held) < 6: held.append(bytearray(b'x') * (10 << 20))
        time.sleep(0.01)
    return held
hoard(take, 8)
)py"},
      {"pages shared since a fork count once", HostileEnd::kHeld, R"py(
common = bytearray(b'x' * (80 << 20))
for child in range(6):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for child in range(6): os.wait()
print('held')
)py"},
      // A spawned child runs on its parent's memory until it executes its program; here
      // it waits half a second before, for a file that another process has leased.
      {"memory lent to a spawned child counts once", HostileEnd::kHeld, R"py(
import fcntl
reading, writing = os.pipe()
if os.fork() == 0:
    def give_back(number, frame):
        time.sleep(0.5)
        os._exit(0)
    signal.signal(signal.SIGIO, give_back)
    file = os.open('leased', os.O_CREAT | os.O_RDWR)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.write(writing, b'.')
    time.sleep(60)
os.read(reading, 1)
held = b'x' * (110 << 20)
start = time.monotonic()
child = os.posix_spawn('/bin/true', ['true'], {},
    file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'leased', os.O_RDONLY, 0)])
waited = time.monotonic() - start >= 0.5
print('held' if waited and os.waitpid(child, 0)[1] == 0 else 'WRONG')
)py"},
      {"page tables", HostileEnd::kKilled, R"py(
import mmap
def take():
    # A page in each of many tables: few pages, many tables.
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    for index in range(6000):
        at = libc.mmap((1 << 40) + (index << 30), 4096, 1, 0x22 | 0x10, -1, 0)
        ctypes.string_at(at, 1)
hoard(take, 10)
)py"},
      {"buffers of sockets", HostileEnd::kKilled, R"py(
def take():
    held = [socket.socketpair() for each in range(60)]
    for pair in held:
        for end in pair:
            end.setblocking(False)
            try:
                while True: end.send(bytes(1 << 16))
            except BlockingIOError: pass
    return held
hoard(take, 20)
)py"},
      {"buffers of sockets on their way", HostileEnd::kKilled, R"py(
def take():
    held = []
    for each in range(100):
        a, b = socket.socketpair()
        carrier = socket.socketpair()
        for end in (a, b):
            end.setblocking(False)
            try:
                while True: end.send(bytes(1 << 16))
            except BlockingIOError: pass
        try:
            socket.send_fds(carrier[0], [b'x'], [a.fileno(), b.fileno()])
            a.close(); b.close()
        except OSError: held.append((a, b))
        held.append(carrier)
        if each >= 55: break
    return held
hoard(take, 12)
)py"},
  };
}

std::vector<HostileProgram> SpoilingPrograms() {
  return {
      {"builtins", HostileEnd::kHeld, R"py(
import builtins
say = print
builtins.print = builtins.len = builtins.sum = lambda *ignored: 13
builtins.left = True
say('held')
)py"},
      {"modules", HostileEnd::kHeld, R"py(
import decimal, fractions, json, math
for module in (decimal, fractions, json, math, os, sys, time): module.left = True
json.dumps = math.sqrt = decimal.Decimal = lambda *ignored: 13
sys.modules['random'] = sys.modules['re'] = None
sys.path.insert(0, '/tmp/evil')
print('held')
)py"},
      {"small numbers", HostileEnd::kHeld, R"py(
# Writes 8 over the one object that every 7 is.
ctypes.memmove(id(7) + 24, id(8) + 24, 4)
os.write(1, b'held\n')
os._exit(0)
)py"},
      {"the interpreter's own code", HostileEnd::kHeld, R"py(
for name, value in list(sys.modules['__main__'].__dict__.items()): pass
for frame in list(sys._current_frames().values()):
    while frame is not None:
        for name in ('be_first', 'be_program', 'serve', 'main', 'launch'):
            frame.f_globals.pop(name, None)
        frame = frame.f_back
print('held')
)py"},
      {"files, environment, hooks", HostileEnd::kHeld, R"py(
open('/tmp/left', 'w').write('x')
os.mkdir('/dev/shm/folder')
open('/tmp/json.py', 'w').write('raise SystemExit(13)')
open('/tmp/sitecustomize.py', 'w').write('raise SystemExit(13)')
os.environ.update(LEFT='1', PYTHONPATH='/tmp', LD_PRELOAD='/tmp/x.so')
os.umask(0o777)
os.chdir('/')
sys.excepthook = sys.displayhook = None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.nice(5)
print('held')
)py"},
      {"all of sympy", HostileEnd::kHeld, R"py(
try:
    import sympy
    sympy.Integer.__add__ = sympy.Integer.__mul__ = lambda *ignored: sympy.Integer(13)
    sympy.core.cache.clear_cache()
except ImportError: pass
print('held')
)py"},
      {"atexit and threads", HostileEnd::kAny, R"py(
import atexit
atexit.register(lambda: os.fork())
threading.Thread(target=lambda: time.sleep(0.2)).start()
print('held')
)py"},
  };
}

}  // namespace pace
