#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sandbox/fusion/client.h"
#include "sandbox/isolation_probe.h"
#include "sandbox/program_control.h"
#include "sandbox/program_watch.h"

namespace pace {
namespace {

constexpr int kAttempts = 3;

Status CheckRequest(const ProgramRequest& request) {
  for (const ProgramFile& file : request.files) PACE_RETURN_IF_ERROR(CheckProgramPath(file.path));
  for (const std::string& path : request.fetch) PACE_RETURN_IF_ERROR(CheckProgramPath(path));
  if (request.timeout.has_value() && !(request.timeout->count() > 0)) {
    return InvalidArgument("timeout = ", request.timeout->count(), ": must be > 0 s");
  }
  if (request.memory_bytes.has_value() && *request.memory_bytes <= 0) {
    return InvalidArgument("memory_bytes = ", *request.memory_bytes, ": must be > 0");
  }
  return Status::Ok();
}

Result<FileDescriptor> InputOf(const std::string& input) {
  if (!input.empty()) return SealedFile(input);
  FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return ErrnoStatus("/dev/null");
  return null;
}

ProgramResult CancelledBeforeStart() {
  ProgramResult result;
  result.outcome = ProgramOutcome::kCancelled;
  return result;
}

}  // namespace

class Sandbox::Slot {
 public:
  explicit Slot(Sandbox& sandbox) : sandbox_(sandbox) {
    MutexLock lock(sandbox_.mutex_);
    index_ = sandbox_.slots_.back();
    sandbox_.slots_.pop_back();
  }
  ~Slot() {
    {
      MutexLock lock(sandbox_.mutex_);
      sandbox_.slots_.push_back(index_);
    }
    sandbox_.free_slots_.Give();
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  int64_t index() const { return index_; }

 private:
  Sandbox& sandbox_;
  int64_t index_ = 0;
};

bool NamesModule(const std::string& code, const std::vector<std::string>& modules) {
  for (const std::string& module : modules) {
    if (code.find(module) != std::string::npos) return true;
  }
  return false;
}

Result<std::unique_ptr<Sandbox>> Sandbox::Start(const SandboxOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  const bool isolated = options.mode == SandboxMode::kIsolated;
  if (isolated) PACE_RETURN_IF_ERROR(RequireIsolation(ProbeIsolation()));
  Result<PythonInstallation> python = FindPython(options.python);
  if (!python.ok()) return python.status().At("sandbox");
  Result<ProgramSlots> slots = ProgramSlots::Make(options.max_programs);
  if (!slots.ok()) return slots.status().At("sandbox");
  auto sandbox = std::unique_ptr<Sandbox>(
      new Sandbox(options, std::move(python).value(), std::move(slots).value()));
  if (isolated && options.control_groups) {
    sandbox->groups_ = ControlGroups::Make(options.max_programs, options.max_processes);
  }
  {
    MutexLock lock(sandbox->mutex_);
    for (int64_t slot = options.max_programs; slot-- > 0;) sandbox->slots_.push_back(slot);
  }
  // One program through, so that what does not work here is known now.
  PACE_ASSIGN_OR_RETURN(const ProgramResult first, sandbox->Run({.code = "print(1)"}, {}));
  if (first.out != "1\n") {
    return Unavailable("sandbox: a first program does not run: ", first.error.substr(0, 300));
  }
  if (!options.warm_modules.empty()) {
    PACE_ASSIGN_OR_RETURN(const std::shared_ptr<Zygote> warm,
                          sandbox->ZygoteFor(options.warm_modules[0]));
    sandbox->warm_modules_ = warm->modules();
  }
  return sandbox;
}

Result<std::shared_ptr<Zygote>> Sandbox::ZygoteFor(const std::string& code) {
  const bool warm = NamesModule(code, options_.warm_modules);
  MutexLock lock(mutex_);
  std::shared_ptr<Zygote>& zygote = warm ? warm_ : plain_;
  if (zygote != nullptr && zygote->alive()) return zygote;
  PACE_ASSIGN_OR_RETURN(
      zygote,
      Zygote::Start(options_, python_, warm ? options_.warm_modules : std::vector<std::string>(),
                    groups_ != nullptr && groups_->bounds_processor()));
  return zygote;
}

Result<ProgramResult> Sandbox::Run(const ProgramRequest& request,
                                   const Cancellation& cancellation) {
  PACE_RETURN_IF_ERROR(CheckRequest(request));
  const Result<bool> taken = free_slots_.Take(cancellation);
  if (!taken.ok()) return taken.status().At("sandbox");
  if (!*taken) return CancelledBeforeStart();
  const Slot slot(*this);
  for (int attempt = 1;; ++attempt) {
    Result<ProgramResult> result = RunOnce(request, slot.index(), cancellation);
    if (result.ok() || result.status().code() != StatusCode::kUnavailable) return result;
    if (attempt == kAttempts) return result;
  }
}

Result<ProgramResult> Sandbox::RunOnce(const ProgramRequest& request, int64_t slot,
                                       const Cancellation& cancellation) {
  const int64_t memory = request.memory_bytes.value_or(options_.memory_bytes);
  PACE_ASSIGN_OR_RETURN(FileDescriptor input, InputOf(request.input));
  PACE_ASSIGN_OR_RETURN(const FileDescriptor text, SealedFile(ProgramRequestText(request, memory)));
  PACE_ASSIGN_OR_RETURN(DescriptorPair control, MakeSocketPair(SOCK_STREAM));
  PACE_ASSIGN_OR_RETURN(DescriptorPair out, MakePipe());
  PACE_ASSIGN_OR_RETURN(DescriptorPair error, MakePipe());
  ProgramDescriptors program{.slot = slot,
                             .control = control.second.get(),
                             .request = text.get(),
                             .input = input.get(),
                             .out = out.second.get(),
                             .error = error.second.get()};
  if (groups_ != nullptr) {
    if (!groups_->SetMemory(slot, memory)) {
      return DataLoss("sandbox: the memory limit of a control group cannot be set");
    }
    program.memory_events = groups_->MemoryEvents(slot);
    program.memberships = groups_->Memberships(slot);
  }
  {
    PACE_ASSIGN_OR_RETURN(const std::shared_ptr<Zygote> zygote, ZygoteFor(request.code));
    PACE_RETURN_IF_ERROR(zygote->Launch(program));
  }
  // The program's ends are its own now: a stream ends when it closes them.
  control.second.Close();
  out.second.Close();
  error.second.Close();
  return WatchProgram({.control = std::move(control.first),
                       .out = std::move(out.first),
                       .error = std::move(error.first)},
                      {.timeout = request.timeout.value_or(options_.timeout),
                       .max_output_bytes = options_.max_output_bytes,
                       .ask_first = options_.mode == SandboxMode::kUnsafe},
                      cancellation);
}

std::string Sandbox::Description() const {
  if (options_.mode == SandboxMode::kUnsafe) {
    return "NOT isolated (tools.sandbox: unsafe): programs see this machine's files and network";
  }
  if (groups_ == nullptr) {
    return "isolated, without control groups: memory is bounded per process and its sum watched "
           "every 50 ms, not bounded exactly; processor time by niceness alone";
  }
  return Concat("isolated, with control groups ", groups_->is_unified() ? "v2" : "v1",
                ": memory of a program, kernel memory and /tmp included, and processes are bounded",
                groups_->bounds_processor() ? ", processor time is shared fairly"
                                            : "; processor time by niceness alone");
}

Result<std::unique_ptr<ProgramRunner>> StartToolRunner(const ToolsOptions& options) {
  if (options.url.empty()) {
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox,
                          Sandbox::Start(SandboxOptionsFrom(options)));
    return std::unique_ptr<ProgramRunner>(std::move(sandbox));
  }
  Result<std::unique_ptr<FusionClient>> client =
      FusionClient::Make({.url = options.url,
                          .max_programs = options.max_programs,
                          .timeout = Seconds(options.timeout)});
  if (!client.ok()) return client.status().At("tools.url");
  PACE_RETURN_IF_ERROR((*client)->Ping().At("tools.url"));
  return std::unique_ptr<ProgramRunner>(std::move(client).value());
}

}  // namespace pace
