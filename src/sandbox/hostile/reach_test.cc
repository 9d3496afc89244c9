// Programs that reach for something that a test puts there; hostile_table_test.cc has the rest.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "sandbox/hostile/test_hostile.h"

namespace pace {
namespace {

using HostileReachTest = HostileTest;

// A socket outside that a program must not reach.
class Listener {
 public:
  Listener(int family, const void* address, socklen_t size)
      : socket_(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    listening_ = ::bind(socket_.get(), static_cast<const sockaddr*>(address), size) == 0 &&
                 ::listen(socket_.get(), 4) == 0;
    socklen_t length = sizeof(bound_);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound_), &length);
  }
  bool listening() const { return listening_; }
  bool Reached() const { return FileDescriptor(::accept(socket_.get(), nullptr, nullptr)).valid(); }
  int port() const { return ntohs(reinterpret_cast<const sockaddr_in*>(&bound_)->sin_port); }

 private:
  FileDescriptor socket_;
  sockaddr_storage bound_{};
  bool listening_ = false;
};

TEST_F(HostileReachTest, ThereIsNoNetworkOfVersion4) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Listener listener(AF_INET, &address, sizeof(address));
  ASSERT_TRUE(listener.listening());
  const std::string port = std::to_string(listener.port());
  ExpectAllRefused("socket.create_connection(('127.0.0.1', " + port + "), 1)\n" +
                   "socket.create_connection(('8.8.8.8', 53), 1)\n"
                   "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                   "socket.getaddrinfo('localhost', 80)\n"
                   "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
                   "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)");
  EXPECT_FALSE(listener.Reached());
}

TEST_F(HostileReachTest, ThereIsNoNetworkOfVersion6) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const Listener listener(AF_INET6, &address, sizeof(address));
  // A machine without it has no listener; the program must be refused all the same.
  const std::string port = std::to_string(listener.listening() ? listener.port() : 80);
  ExpectAllRefused("socket.create_connection(('::1', " + port + "), 1)\n" +
                   "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)");
  EXPECT_FALSE(listener.listening() && listener.Reached());
}

TEST_F(HostileReachTest, UnixSocketsOfOthersAreOutOfReach) {
  sockaddr_un abstract{};
  abstract.sun_family = AF_UNIX;
  const std::string name = "pace-hostile-" + std::to_string(::getpid());
  std::memcpy(abstract.sun_path + 1, name.data(), name.size());
  const Listener listener(
      AF_UNIX, &abstract,
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
  ASSERT_TRUE(listener.listening());
  ExpectAllRefused("socket.socket(socket.AF_UNIX).connect('\\\\0" + name + "')\n" +
                   "socket.socket(socket.AF_UNIX).bind('/tmp/socket')\n"
                   "a, b = socket.socketpair(); b.connect('\\\\0" +
                   name + "')");
  EXPECT_FALSE(listener.Reached());
}

TEST_F(HostileReachTest, ProcessesOfOthersAreInvisible) {
  const std::string outside = std::to_string(::getpid());
  const ProgramResult result = RunHostile(
      "import os\n"
      "outside = " +
      outside +
      "\n"
      "seen = [name for name in os.listdir('/proc') if name.isdigit()]\n"
      "print(all(int(name) < 10 for name in seen))\n"
      "for path in [f'/proc/{outside}/environ', f'/proc/{outside}/root', '/proc/1/environ',\n"
      "             '/proc/1/mem', '/proc/1/maps', '/proc/1/root/tmp', '/proc/1/fd']:\n"
      "    try:\n"
      "        os.listdir(path) if path.endswith(('root', 'tmp', 'fd')) else open(path, "
      "'rb').read(1)\n"
      "        print('READ', path)\n"
      "    except OSError: pass\n"
      "try: os.kill(outside, 0)\n"
      "except ProcessLookupError: print('nobody')\n");
  EXPECT_EQ(result.out, "True\nnobody\n") << result.error;
}

TEST_F(HostileReachTest, NothingOfTheFirstProcessCanBeWritten) {
  if (!HasProc()) GTEST_SKIP() << "no /proc may be mounted here: there is nothing to write to";
  const ProgramResult result = RunHostile(
      "import os\n"
      "refused = 0\n"
      "for folder, _, files in os.walk('/proc/1'):\n"
      "    for file in files:\n"
      "        try:\n"
      "            os.write(os.open(f'{folder}/{file}', os.O_WRONLY), b'1')\n"
      "            print('WROTE', folder, file)\n"
      "        except OSError: refused += 1\n"
      "print(refused > 20)\n");
  EXPECT_EQ(result.out, "True\n") << result.error;
}

TEST_F(HostileReachTest, FilesOfTheCallerAreNotThere) {
  const std::string secret = std::string(PACE_BINARY_DIR) + "/hostile_test_secret";
  std::ofstream(secret) << "swordfish";
  const char* home = std::getenv("HOME");
  const ProgramResult result = RunHostile(
      "import os, sys\n"
      "def seen(path):\n"
      "    try: return sorted(os.listdir(path))\n"
      "    except OSError: return []\n"
      "for path in ['" +
      secret +
      "', '" PACE_SOURCE_DIR
      "/CMakeLists.txt', '/etc/shadow',\n"
      "             '/etc/hostname', '/var/log', '/run/secrets', '/sys/kernel']:\n"
      "    if os.path.lexists(path): print('THERE', path)\n"
      // An interpreter may live in somebody's home; then its folder alone is there.
      "inside = [name for name in seen('" +
      std::string(home == nullptr ? "/" : home) +
      "')\n"
      "          if not sys.prefix.startswith(os.path.join('" +
      std::string(home == nullptr ? "/" : home) +
      "', name))]\n"
      "print(inside, sorted(os.listdir('/tmp')))\n");
  std::filesystem::remove(secret);
  EXPECT_EQ(result.out, "[] []\n") << result.error;
}

TEST_F(HostileReachTest, LinksLeadNowhereElse) {
  ProgramRequest request;
  request.code =
      "import os\n"
      "os.symlink('/etc/shadow', 'link')\n"
      "os.symlink('/proc/1/environ', 'environment')\n"
      "os.symlink('../../../../etc', 'above')\n"
      "for path in ['link', 'environment', 'above/hostname', '/proc/self/root/var']:\n"
      "    try: print('READ', open(path).read())\n"
      "    except OSError: pass\n"
      "try: os.link('/etc/passwd', 'hard')\n"
      "except OSError: print('refused')\n"
      "os.mkfifo('fifo')\n";
  request.fetch = {"link", "environment", "above/shadow", "fifo"};
  const ProgramResult result = RunHostile(request);
  EXPECT_EQ(result.out, "refused\n") << result.error;
  EXPECT_TRUE(result.files.empty());
}

TEST_F(HostileReachTest, WhatProcessOneSeesIsNotFetched) {
  ProgramRequest request;
  request.code =
      "import os\n"
      "for name in ('maps', 'environ', 'fd/0', 'exe', 'status'):\n"
      "    os.symlink(f'/proc/self/{name}', name.replace('/', '-'))\n"
      "os.symlink('/proc/self', 'self')\n"
      "os.symlink('/usr/bin/env', 'system')\n"
      "os.symlink('/proc/self/root/tmp/mine', 'around')\n"
      "open('mine', 'w').write('mine')\n"
      "os.symlink('mine', 'inside')\n";
  request.fetch = {"maps",   "environ", "fd-0",   "exe",      "status",
                   "system", "around",  "inside", "self/maps"};
  const ProgramResult result = RunHostile(request);
  ASSERT_EQ(result.files.size(), 1u) << result.error;
  EXPECT_EQ(result.files[0].path, "inside");
  EXPECT_EQ(result.files[0].content, "mine");
}

TEST_F(HostileReachTest, DevicesAreHarmless) {
  const ProgramResult listed = RunHostile("import os; print(sorted(os.listdir('/dev')))\n");
  EXPECT_EQ(listed.out,
            "['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', "
            "'zero']\n");
  ExpectAllRefused(
      "os.mknod('disk', 0o600 | 0o060000, os.makedev(254, 0))\n"
      "os.mknod('memory', 0o600 | 0o020000, os.makedev(1, 1))\n"
      "open('/dev/mem', 'rb')\n"
      "open('/dev/kmsg', 'rb')\n"
      "open('/dev/tty', 'rb')\n"
      "os.remove('/dev/null')");
}

}  // namespace
}  // namespace pace
