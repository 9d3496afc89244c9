#include "sandbox/hostile/programs.h"

namespace pace {

std::string HostilePrelude() {
  return R"py(
import ctypes, os, resource, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == 'x86_64'
NUMBERS = dict(ptrace=(101, 117), process_vm_readv=(310, 270), process_vm_writev=(311, 271),
    kcmp=(312, 272), memfd_create=(319, 279), bpf=(321, 280), keyctl=(250, 219),
    add_key=(248, 217), request_key=(249, 218), userfaultfd=(323, 282), setns=(308, 268),
    unshare=(272, 97), mount=(165, 40), umount2=(166, 39), pivot_root=(155, 41),
    chroot=(161, 51), clone=(56, 220), perf_event_open=(298, 241), init_module=(175, 105),
    finit_module=(313, 273), delete_module=(176, 106), kexec_load=(246, 104),
    reboot=(169, 142), syslog=(103, 116), acct=(163, 89), sethostname=(170, 161),
    setdomainname=(171, 162), settimeofday=(164, 170), clock_settime=(227, 112),
    adjtimex=(159, 171), swapon=(167, 224), quotactl=(179, 60), vhangup=(153, 58),
    open_by_handle_at=(304, 265), name_to_handle_at=(303, 264), mknodat=(259, 33),
    shmget=(29, 194), msgget=(68, 186), semget=(64, 190), mq_open=(240, 180),
    personality=(135, 92), fanotify_init=(300, 262), move_pages=(279, 239), mbind=(237, 235),
    migrate_pages=(256, 238), set_mempolicy=(238, 237), io_setup=(206, 0),
    prlimit64=(302, 261), sched_setscheduler=(144, 119), sched_setparam=(142, 118),
    sched_setattr=(314, 274), sched_setaffinity=(203, 122), setpriority=(141, 140),
    ioprio_set=(251, 30), capset=(126, 91), setgroups=(116, 159), setresuid=(117, 147),
    io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428,
    move_mount=429, fsopen=430, fsconfig=431, fsmount=432, fspick=433, clone3=435,
    pidfd_getfd=438, process_madvise=440, mount_setattr=442, quotactl_fd=443,
    memfd_secret=447, process_mrelease=448)
def call(name, *arguments):
    number = NUMBERS.get(name, name)
    if isinstance(number, tuple): number = number[0 if X86 else 1]
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if libc.syscall(number, *arguments) < 0: raise OSError(ctypes.get_errno(), 'refused')
def refuse(*attempts):
    for attempt in attempts:
        try:
            eval(attempt)
            print('WENT THROUGH:', attempt)
        except OSError: pass
    print('held')
def hoard(take, count=8):
    global reading, writing
    reading, writing = os.pipe()
    for child in range(count):
        if os.fork() == 0:
            held = take()
            os.write(writing, b'.')
            time.sleep(60)
    os.close(writing)
    arrived = 0
    while arrived < count: arrived += len(os.read(reading, count)) or sys.exit('some died')
    time.sleep(2)
    print('ALL HOLD THEIRS')
)py";
}

std::vector<HostileProgram> ReachingPrograms() {
  return {
      {"files of the machine", HostileEnd::kHeld, R"py(
there = ['/' + name for name in ('etc/shadow', 'etc/hostname', 'etc/ssh', 'root', 'home', 'var', 'run',
                                 'sys', 'boot', 'mnt', 'srv', 'opt/secret', 'old', 'new')
         if os.path.lexists('/' + name)]
inside = [path for path in there if os.listdir(path)] if there else []
print('held' if not inside or all(sys.prefix.startswith(path) for path in inside) else inside)
)py"},
      {"environment of the caller", HostileEnd::kHeld, R"py(
seen = str(dict(os.environ)) + subprocess.run(['env'], capture_output=True, text=True).stdout
for process in ('self', '1', str(os.getppid())):
    try: seen += open(f'/proc/{process}/environ').read()
    except OSError: pass
print('SEEN' if 'swordfish' in seen else 'held')
)py"},
      {"insides of process 1", HostileEnd::kHeld, R"py(
refuse(*[f"open('/proc/1/{name}', 'rb').read(1)" for name in
         ('environ', 'mem', 'maps', 'smaps', 'auxv', 'stack', 'syscall', 'pagemap', 'io')],
       *[f"os.listdir('/proc/1/{name}')" for name in ('fd', 'root', 'cwd', 'map_files', 'fdinfo')],
       "os.readlink('/proc/1/exe')", "os.readlink('/proc/1/ns/user')")
)py"},
      {"writing to process 1", HostileEnd::kHeld, R"py(
refuse(*[f"os.write(os.open('/proc/1/{name}', os.O_WRONLY), b'1')" for name in
         ('oom_score_adj', 'autogroup', 'timerslack_ns', 'comm', 'mem', 'uid_map', 'gid_map',
          'setgroups', 'coredump_filter', 'clear_refs', 'sched')])
)py"},
      {"signals to process 1", HostileEnd::kHeld, R"py(
for target in (1, os.getppid()):
    for number in range(1, 65):
        try: os.kill(target, number)
        except OSError: pass
print('held')
)py"},
      {"a pidfd of process 1", HostileEnd::kHeld, R"py(
process = os.pidfd_open(1)
signal.pidfd_send_signal(process, signal.SIGKILL)
refuse("call('pidfd_getfd', process, 3, 0)", "call('process_madvise', process, 0, 0, 21, 0)",
       "call('process_mrelease', process, 0)", "call('setns', process, 0x20000)")
)py"},
      {"tracing", HostileEnd::kHeld, R"py(
refuse("call('ptrace', 0, 0, 0, 0)", "call('ptrace', 16, 1, 0, 0)", "call('ptrace', 0x4206, 1, 0, 0)",
       "call('process_vm_readv', 1, 0, 0, 0, 0, 0)", "call('process_vm_writev', 1, 0, 0, 0, 0, 0)",
       "call('kcmp', 1, os.getpid(), 0, 0, 0)")
)py"},
      {"limits of process 1", HostileEnd::kHeld, R"py(
for kind in range(16):
    for who in (1, os.getppid()):
        try:
            resource.prlimit(who, kind, (0, 0))
            print('WENT THROUGH:', kind)
        except (OSError, ValueError): pass
refuse("call('prlimit64', 1, 7, bytes(16), 0)")
)py"},
      {"limits of process 1, uncaught", HostileEnd::kError, R"py(
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
time.sleep(1)
)py"},
      {"scheduling of process 1", HostileEnd::kHeld, R"py(
parameter = os.sched_param(0)
refuse("os.sched_setscheduler(1, os.SCHED_IDLE, parameter)", "os.sched_setparam(1, parameter)",
       "os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, parameter)",
       "os.sched_setaffinity(1, [0])", "call('sched_setattr', 1, bytes(48), 0)",
       "os.setpriority(os.PRIO_PROCESS, 1, 19)", "os.setpriority(os.PRIO_USER, 0, 19)",
       "os.setpriority(os.PRIO_USER, 1000, 19)", "os.setpriority(os.PRIO_PGRP, 1, 19)",
       "call('ioprio_set', 1, 1, 0x6007)", "call('ioprio_set', 3, 1000, 0x6007)")
)py"},
      {"better scheduling of its own", HostileEnd::kHeld, R"py(
refuse("os.setpriority(os.PRIO_PROCESS, 0, -20)",
       "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
       "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))")
)py"},
      {"processes of others", HostileEnd::kHeld, R"py(
outside = [pid for pid in range(100, 3000) if os.path.exists(f'/proc/{pid}')]
try: os.kill(-1, 0)
except OSError: pass
print(outside or 'held')
)py"},
      {"namespaces", HostileEnd::kHeld, R"py(
flags = (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80)
refuse(*[f"call('unshare', {flag})" for flag in flags],
       *[f"call('clone', {flag} | 17, 0, 0, 0, 0)" for flag in flags],
       "call('setns', 0, 0)", "call('clone3', bytes(88), 88)")
)py"},
      {"mounts", HostileEnd::kHeld, R"py(
refuse("call('mount', b'tmpfs', b'/usr', b'tmpfs', 0, 0)", "call('umount2', b'/usr', 2)",
       "call('mount', 0, b'/', 0, 32 | 4096, 0)", "call('umount2', b'/proc', 2)",
       "call('pivot_root', b'/tmp', b'/tmp')", "call('chroot', b'/tmp')",
       "call('open_tree', -100, b'/', 1)", "call('fsopen', b'tmpfs', 0)",
       "call('fspick', -100, b'/', 0)", "call('move_mount', -1, b'', -100, b'/usr', 4)",
       "call('mount_setattr', -100, b'/', 0, bytes(32), 32)")
)py"},
      {"the file system around its root", HostileEnd::kHeld, R"py(
root = os.open('/', os.O_RDONLY)
os.chdir('/')
for step in range(40): os.chdir('..')
same = os.stat('.').st_ino == os.fstat(root).st_ino
refuse("os.listdir('/proc/self/root/var')", "os.listdir('/proc/1/root')",
       "call('open_by_handle_at', root, bytes(16), 0)",
       "call('name_to_handle_at', root, b'usr', bytes(136), bytes(8), 0)") if same else print('OUT')
)py"},
      {"users and capabilities", HostileEnd::kHeld, R"py(
header = (0x20080522).to_bytes(4, 'little') + bytes(4)
refuse("os.setuid(0)", "os.setgid(0)", "os.setgroups([0])", "call('setresuid', 0, 0, 0)",
       "call('capset', header, b'\\xff' * 24)", "os.chown('/tmp', 0, 0)",
       "os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1')")
)py"},
      {"SUID programs of the machine", HostileEnd::kHeld, R"py(
for path in ('/bin/su', '/bin/mount', '/usr/bin/passwd', '/usr/bin/sudo', '/usr/bin/chsh',
             '/usr/bin/newgrp', '/usr/bin/pkexec'):
    if not os.path.exists(path): continue
    done = subprocess.run([path, '-c', 'id'], capture_output=True, stdin=subprocess.DEVNULL)
    if b'uid=0' in done.stdout: print('WENT THROUGH:', path)
print('held')
)py"},
      {"a SUID program of its own", HostileEnd::kHeld, R"py(
open('mine', 'wb').write(open('/usr/bin/id', 'rb').read())
try: os.chmod('mine', 0o6755)
except OSError: os.chmod('mine', 0o755)
print('held' if b'uid=0' not in subprocess.run(['./mine'], capture_output=True).stdout else 'ROOT')
)py"},
      {"network", HostileEnd::kHeld, R"py(
refuse("socket.create_connection(('127.0.0.1', 22), 1)", "socket.create_connection(('::1', 22), 1)",
       "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "socket.getaddrinfo('localhost', 80)",
       *[f"socket.socket({family}, {kind})" for family in
         (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET,
          15, 31, 38, 40) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)])
)py"},
      {"sockets made of pairs", HostileEnd::kHeld, R"py(
a, b = socket.socketpair()
c, d = socket.socketpair(type=socket.SOCK_DGRAM)
refuse("b.connect('\\0abstract')", "a.bind('/tmp/socket')", "a.listen()",
       "c.sendto(b'x', '/run/systemd/journal/socket')", "d.connect('/dev/log')",
       "socket.socketpair(socket.AF_INET, socket.SOCK_STREAM)")
)py"},
      {"devices", HostileEnd::kHeld, R"py(
refuse("os.mknod('disk', 0o600 | 0o060000, os.makedev(254, 0))",
       "os.mknod('memory', 0o600 | 0o020000, os.makedev(1, 1))",
       "call('mknodat', -100, b'disk', 0o060600, 65024)", "open('/dev/mem', 'rb')",
       "open('/dev/kmsg', 'rb')", "open('/dev/tty', 'rb')", "open('/dev/ptmx', 'rb')",
       "open('/dev/fuse', 'rb')", "open('/dev/kvm', 'rb')", "os.remove('/dev/null')",
       "os.chmod('/dev/null', 0)")
)py"},
      {"the terminal of the caller", HostileEnd::kHeld, R"py(
import fcntl
refuse(*[f"fcntl.ioctl({number}, 0x5412, b'x')" for number in range(3)],
       *[f"fcntl.ioctl({number}, 0x540E, 0)" for number in range(3)])
)py"},
      {"keys", HostileEnd::kHeld, R"py(
refuse("call('keyctl', 0, -3, 1)", "call('keyctl', 1, 0)",
       "call('add_key', b'user', b'k', b'v', 1, -3)", "call('request_key', b'user', b'k', 0, 0)")
)py"},
      {"rings, bpf, perf, faults", HostileEnd::kHeld, R"py(
refuse("call('io_uring_setup', 8, bytes(120))", "call('io_uring_enter', 0, 0, 0, 0, 0, 0)",
       "call('io_uring_register', 0, 0, 0, 0)", "call('bpf', 0, bytes(72), 72)",
       "call('perf_event_open', bytes(112), 0, -1, -1, 0)", "call('userfaultfd', 0)",
       "call('userfaultfd', 1)", "call('io_setup', 1, bytes(8))", "call('fanotify_init', 0, 0)")
)py"},
      {"memory that no process counts", HostileEnd::kHeld, R"py(
refuse("call('memfd_create', b'm', 0)", "call('memfd_secret', 0)", "call('shmget', 0, 4096, 0o1600)",
       "call('msgget', 0, 0o1600)", "call('semget', 0, 1, 0o1600)",
       "call('mq_open', b'q', 66, 0o600, 0)", "call('mbind', 0, 0, 0, 0, 0, 0)",
       "call('move_pages', 1, 0, 0, 0, 0, 0)", "call('migrate_pages', 1, 0, 0, 0)",
       "call('set_mempolicy', 0, 0, 0)")
)py"},
      {"the kernel and its clocks", HostileEnd::kHeld, R"py(
refuse("call('init_module', 0, 0, b'')", "call('finit_module', 0, b'', 0)",
       "call('delete_module', b'x', 0)", "call('kexec_load', 0, 0, 0, 0)",
       "call('reboot', 0xfee1dead, 672274793, 0, 0)", "call('syslog', 3, bytes(64), 64)",
       "call('acct', 0)", "call('swapon', b'/tmp', 0)", "call('quotactl', 0, 0, 0, 0)",
       "call('quotactl_fd', 0, 0, 0, 0)", "call('sethostname', b'x', 1)",
       "call('setdomainname', b'x', 1)", "call('settimeofday', bytes(16), 0)",
       "call('clock_settime', 0, bytes(16))", "call('adjtimex', bytes(208))", "call('vhangup')",
       "call('personality', 0x40000)", "open('/proc/sys/kernel/hostname', 'w')",
       "open('/proc/sysrq-trigger', 'w')")
)py"},
      {"calls that do not exist yet", HostileEnd::kHeld, R"py(
for number in list(range(451, 520)) + [0x40000000 | n for n in (0, 41, 101, 165, 272)]:
    if libc.syscall(number, *[ctypes.c_long(0)] * 6) >= 0: print('WENT THROUGH:', number)
print('held')
)py"},
      {"writing outside of /tmp", HostileEnd::kHeld, R"py(
refuse("open('/new', 'w')", "open('/usr/new', 'w')", "open('/etc/passwd', 'a')",
       "open('/dev/new', 'w')", "open('/proc/new', 'w')", "os.chmod('/usr', 0o777)",
       "os.mkdir('/mnt')", "os.rename('/tmp', '/elsewhere')", "os.remove('/etc/passwd')",
       "os.link('/etc/passwd', 'hard')", "os.utime('/etc/passwd')", "os.truncate('/etc/group', 0)")
)py"},
      {"writing to the interpreter", HostileEnd::kHeld, R"py(
import json, site
refuse("open(json.__file__, 'a')", "open(os.path.join(sys.prefix, 'new'), 'w')",
       "open(sys.executable, 'r+b')", "open(os.path.join(site.__file__[:-7], 'sitecustomize.py'), 'w')",
       "os.rename(json.__file__, json.__file__ + '.old')")
)py"},
      {"its own insides in /proc", HostileEnd::kHeld, R"py(
refuse("os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
       "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1')",
       "os.write(os.open('/proc/self/gid_map', os.O_WRONLY), b'0 0 1')",
       "os.write(os.open('/proc/self/setgroups', os.O_WRONLY), b'allow')")
)py"},
      {"control groups", HostileEnd::kHeld, R"py(
try: names = {line.rpartition(':')[2].strip() for line in open('/proc/self/cgroup')}
except OSError: names = {'/'}
outside = [name for name in names if name != '/']
refuse("os.listdir('/sys/fs/cgroup')",
       "call('mount', b'c', b'/tmp', b'cgroup2', 0, 0)") if not outside else print(outside)
)py"},
      {"descriptors of ours", HostileEnd::kHeld, R"py(
found = []
for number in range(3, 1024):
    try: found.append((number, os.fstat(number)))
    except OSError: pass
print(found or 'held')
)py"},
  };
}

}  // namespace pace
