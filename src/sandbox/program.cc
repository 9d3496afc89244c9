#include "sandbox/program.h"

#include "core/printable.h"

namespace pace {

Status CheckProgramPath(const std::string& path) {
  const auto broken = [&path](const char* rule) {
    return InvalidArgument("file '", Printable(path), "': ", rule);
  };
  if (path.empty()) return broken("a path must not be empty");
  if (path.front() == '/') return broken("must be relative to the working folder");
  if (path.find('\0') != std::string::npos) return broken("must not hold a zero byte");
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return broken("must be plain: no '.', no '..', no empty part");
    }
    begin = end + 1;
  }
  return Status::Ok();
}

}  // namespace pace
