#include "sandbox/hostile/programs.h"

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

}  // namespace pace
