#include "sandbox/zygote.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/concat.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "sandbox/syscall_filter.h"

namespace pace {
namespace {

constexpr int kStartPatienceMs = 120'000;  // imports from a cold disk take long

// Its text and settings come by descriptor: what a program finds in the command
// line of its ancestors says nothing.
constexpr const char* kBootstrap =
    "import os; exec(compile(os.pread(4, 1 << 20, 0), '<zygote>', 'exec'))";

std::string SettingsText(const SandboxOptions& options, const std::vector<std::string>& modules,
                         bool processor_group) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put("isolated", options.mode == SandboxMode::kIsolated);
  json.Put("processor_group", processor_group);
  json.Put("tmp_bytes", options.tmp_bytes);
  json.Put("max_file_bytes", options.max_file_bytes);
  json.Put("max_open_files", options.max_open_files);
  json.Put("max_processes", options.max_processes);
  json.Put("syscall_filter", SyscallFilterText(ProgramSyscallFilter()));
  json.Key("modules");
  json.BeginArray();
  for (const std::string& module : modules) json.Value(module);
  json.EndArray();
  json.EndObject();
  return text;
}

}  // namespace

Result<std::unique_ptr<Zygote>> Zygote::Start(const SandboxOptions& options,
                                              const PythonInstallation& python,
                                              const std::vector<std::string>& modules,
                                              bool processor_group) {
  PACE_ASSIGN_OR_RETURN(DescriptorPair command, MakeSocketPair(SOCK_SEQPACKET));
  PACE_ASSIGN_OR_RETURN(const FileDescriptor source, SealedFile(ZygoteSource()));
  PACE_ASSIGN_OR_RETURN(const FileDescriptor settings,
                        SealedFile(SettingsText(options, modules, processor_group)));

  IsolatedProcessOptions start;
  start.isolated = options.mode == SandboxMode::kIsolated;
  if (start.isolated) start.root = PlanRoot(python, ThisMachine());
  start.arguments = {python.executable, "-s", "-B", "-c", kBootstrap};
  // One order of sets and one thread of linear algebra: a program's output
  // depends on the program, and threads count as processes.
  start.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8",
                       "PYTHONHASHSEED=0", "OPENBLAS_NUM_THREADS=1"};
  start.descriptors = {command.second.get(), source.get(), settings.get()};
  Result<IsolatedProcess> process = IsolatedProcess::Start(start);
  if (!process.ok()) return process.status().At("sandbox: starting an interpreter");
  command.second.Close();
  auto zygote =
      std::unique_ptr<Zygote>(new Zygote(std::move(command.first), std::move(process).value()));
  PACE_RETURN_IF_ERROR(zygote->WaitUntilReady());
  return zygote;
}

Status Zygote::WaitUntilReady() {
  pollfd waiting{command_.get(), POLLIN, 0};
  char buffer[65536];
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, kStartPatienceMs)) < 0 && errno == EINTR) {
  }
  const ssize_t count = ready > 0 ? ::recv(command_.get(), buffer, sizeof(buffer), 0) : 0;
  if (count <= 0) {
    return Unavailable("sandbox: the interpreter ", ready == 0 ? "did not get ready" : "died",
                       " while it imported its modules");
  }
  JsonScanner scan(std::string_view(buffer, static_cast<size_t>(count)));
  scan.EnterObject();
  while (scan.NextKey()) {
    scan.EnterArray();
    while (scan.NextItem()) scan.Text(modules_.emplace_back());
  }
  scan.End();
  return scan.status();
}

bool Zygote::alive() const {
  pollfd socket{command_.get(), POLLIN, 0};
  // It says nothing after its start, so anything to read is its end.
  return ::poll(&socket, 1, 0) == 0;
}

Status Zygote::Launch(const ProgramDescriptors& program) {
  std::vector<int> descriptors = {program.control, program.request, program.input, program.out,
                                  program.error};
  if (!program.memberships.empty()) descriptors.push_back(program.memory_events);
  descriptors.insert(descriptors.end(), program.memberships.begin(), program.memberships.end());
  return SendDescriptors(command_.get(), Concat(program.slot), descriptors);
}

}  // namespace pace
