#include "config/launch_options.h"

#include <array>
#include <string_view>

namespace pace {
namespace {

constexpr std::array<std::string_view, 3> kEngineNames = {"vllm", "sglang", "pace"};

}  // namespace

std::vector<Field> LaunchOptions::Fields() {
  return {
      Field::Enum("engine", engine, kEngineNames,
                  "The program of an engine: vLLM, SGLang or `pace serve`."),
      Field::Text("name", name, "Of the job: lower-case letters, digits and -."),
      Field::Text("folder", folder,
                  "Folder that every machine sees, for the run, its weights and its logs; empty = "
                  "where the files are written, and /pace on Kubernetes."),
      Field::Text("pace", pace, "The program pace on the machines."),
      Field::Text("python", python, "The Python that has vLLM or SGLang."),
      Field::TextList("engine_options", engine_options,
                      "Further arguments of the engine's program, one each."),
      Field::Int("port", port, "Of the first engine of a machine; the next ones follow.")
          .AtLeast(1)
          .AtMost(65535),
      Field::Int("master_port", master_port, "Where trainer ranks find each other.")
          .AtLeast(1)
          .AtMost(65535),
      Field::Int("cpus", cpus, "CPUs of each engine and each rank; 0 = as the scheduler gives.")
          .AtLeast(0)
          .AtMost(4096),
      Field::Int("max_restarts", max_restarts,
                 "How often a trainer that failed is started again from its newest checkpoint.")
          .AtLeast(0)
          .AtMost(1000),
      Field::Text("time", time, "Slurm: time limit, as in 24:00:00; empty = the partition's."),
      Field::TextList("sbatch", sbatch,
                      "Slurm: further options, as in --partition=gpu, --account=mine."),
      Field::Text("image", image, "Kubernetes: image with pace, of the trainer."),
      Field::Text("engine_image", engine_image, "Kubernetes: image of the engines; empty = image."),
      Field::Text("volume", volume,
                  "Kubernetes: PersistentVolumeClaim (ReadWriteMany) mounted at launch.folder."),
  };
}

}  // namespace pace
