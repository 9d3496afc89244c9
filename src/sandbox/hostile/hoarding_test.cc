#include "sandbox/hostile/programs.h"

namespace pace {

// For the same limits as GreedyPrograms.
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
