// Writes the reports that the browser test opens: write_sample_reports DIR.
#include <cstdio>
#include <string>
#include <vector>

#include "report/report.h"
#include "sample_runs.h"

namespace pace {
namespace {

int Write(const std::string& path, const std::vector<RunData>& runs) {
  const Status status = WriteReport(runs, path);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

int WriteAll(const std::string& directory) {
  int failed =
      Write(directory + "/four_runs.html", {SampleRun("sync", 300), SampleRun("async", 300),
                                            SampleRun("raw", 300), SampleRun("effective", 300)});
  failed |= Write(directory + "/one_run.html", {SampleRun("effective", 40)});
  failed |= Write(directory + "/metrics_only.html",
                  {SampleRunWithoutDecisions("async", 30), SampleRunWithoutDecisions("raw", 30)});
  failed |= Write(
      directory + "/training.html",
      {SampleTrainingRun("sync", 300, {"sums"}), SampleTrainingRun("async", 300, {"sums"}),
       SampleTrainingRun("raw", 300, {"sums"}), SampleTrainingRun("effective", 300, {"sums"})});
  failed |= Write(directory + "/training_one.html",
                  {SampleTrainingRun("effective", 240, {"aime24", "aime25", "<b>hmmt</b>"})});
  std::vector<RunData> many;
  for (const char* method : {"sync", "async", "raw", "generation", "waiting", "effective",
                             "stale-1", "stale-2", "stale-4", "stale-8", "oldest-4", "oldest-8"}) {
    many.push_back(SampleRun(method, 2000));
  }
  many[2].manifest.name =
      "<script>alert(1)</script> & a name \"without\" end " + std::string(300, 'w');
  many[3].manifest.name = "effective";
  many[7] = SampleTrainingRun("stale-2", 1, {"sums"});  // one point for everything
  many[8] = SampleTrainingRun("stale-4", 2000, {"sums", "products"});
  failed |= Write(directory + "/twelve_runs.html", many);
  return failed;
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_sample_reports DIR\n");
    return 2;
  }
  return pace::WriteAll(argv[1]);
}
