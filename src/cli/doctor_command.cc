// pace doctor
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "core/json_writer.h"
#include "model/cpu/kernels/isa.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "record/build_info.h"
#include "sandbox/isolation_probe.h"

namespace pace {
namespace {

struct DoctorArguments {
  bool json = false;
};

// One thing that was looked at: what it is, and what is missing for it if anything.
struct Finding {
  std::string part;   // "gpu"
  std::string what;   // "NVIDIA H200, 139 GiB, ..."
  std::string lacks;  // empty = nothing
};

std::string Gibibytes(int64_t num_bytes) {
  return Concat(num_bytes >> 30, " GiB");
}

Finding FindBuild() {
  return {.part = "build",
          .what = Concat("pace ", PaceVersion(), " (", PaceCommit(), "), ",
                         *PACE_TORCH == '\0' ? "without LibTorch" : "LibTorch " PACE_TORCH, ", ",
                         HasCuda() ? "with CUDA" : "without CUDA"),
          .lacks = *PACE_TORCH == '\0'
                       ? "train, sft, eval and compare need LibTorch (build without PACE_CORE_ONLY)"
                       : ""};
}

// What a processor of this architecture could have beyond the portable level.
std::string MissingIsa() {
#if defined(__x86_64__)
  return "AVX2 or AVX-512, without which decoding is slow";
#else
  return "kernels for this architecture, without which decoding is slow";
#endif
}

Finding FindCpu() {
  return {.part = "cpu",
          .what = Concat(CpuModel(), ", ", std::thread::hardware_concurrency(),
                         " threads, kernels for ", IsaName(BestIsa())),
          .lacks = BestIsa() == Isa::kPortable ? MissingIsa() : ""};
}

Finding FindGpu() {
  const Result<CudaDevice> device = FindCudaDevice();
  if (!device.ok()) return {.part = "gpu", .what = "none", .lacks = device.status().message()};
  return {.part = "gpu",
          .what = Concat(device->name, ", compute capability ", device->capability / 10, ".",
                         device->capability % 10, ", ", Gibibytes(device->free_bytes), " of ",
                         Gibibytes(device->memory_bytes), " free, driver for CUDA ", device->driver,
                         ", runtime ", device->runtime, ", cuBLAS ", device->cublas),
          .lacks = device->capability < 90 ? "a GPU of compute capability 9.0 or later" : ""};
}

Finding FindDeterminism() {
  return {.part = "determinism",
          .what = HasCuda() ? "cpu: a response's bits depend on its own context alone; "
                              "cuda: on the rows beside it too"
                            : "a response's bits depend on its own context alone",
          .lacks = ""};
}

Finding FindSandbox() {
  std::string there;
  std::string lacks;
  for (const IsolationPiece& piece : ProbeIsolation()) {
    std::string& list = piece.error == 0 ? there : lacks;
    if (!list.empty()) list += ", ";
    list += piece.name;
    if (piece.error != 0) list += Concat(" (", std::strerror(piece.error), ")");
  }
  return {.part = "sandbox", .what = there.empty() ? "nothing" : there, .lacks = lacks};
}

Finding FindTraining() {
  const bool has_torch = *PACE_TORCH != '\0';
  if (!has_torch) return {.part = "training", .what = "no", .lacks = "LibTorch"};
  const bool has_gpu = HasCuda() && FindCudaDevice().ok();
  return {.part = "training",
          .what = has_gpu ? "cpu and cuda: float32 and bf16; packed FlashAttention in bf16 on cuda"
                          : "cpu: float32 and bf16",
          .lacks = HasCuda() ? (has_gpu ? "" : "a GPU") : "a build with CUDA, for a GPU"};
}

std::string Json(const std::vector<Finding>& findings) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  for (const Finding& finding : findings) {
    json.Key(finding.part);
    json.BeginObject();
    json.Put("what", finding.what);
    json.Put("lacks", finding.lacks);
    json.EndObject();
  }
  json.EndObject();
  return out;
}

Status RunDoctor(const DoctorArguments& arguments) {
  const std::vector<Finding> findings = {FindBuild(),       FindCpu(),      FindGpu(),
                                         FindDeterminism(), FindTraining(), FindSandbox()};
  if (arguments.json) {
    std::printf("%s\n", Json(findings).c_str());
    return Status::Ok();
  }
  for (const Finding& finding : findings) {
    std::printf("%-15s %s\n", finding.part.c_str(), finding.what.c_str());
    if (!finding.lacks.empty()) std::printf("%-15s   lacks: %s\n", "", finding.lacks.c_str());
  }
  return Status::Ok();
}

}  // namespace

void AddDoctor(const CommandLine& line) {
  line.Add<DoctorArguments>(
      "doctor", "What this build and this machine have, and what they lack", "pace doctor",
      [](CLI::App& app, DoctorArguments& arguments) {
        app.add_flag("--json", arguments.json, "One JSON object");
      },
      RunDoctor);
}

}  // namespace pace
