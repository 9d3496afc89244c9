// The extension module pace._core: one function per part, and the exceptions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bind/convert.h"
#include "record/build_info.h"

namespace pace::python {
namespace {

// Of the interpreter's lifetime: exception types are never freed.
PyObject* g_error = nullptr;
PyObject* g_errors[5] = {};

PyObject* NewError(const nb::module_& module, const char* name, PyObject* second_base) {
  nb::object bases = second_base == nullptr
                         ? nb::borrow(g_error == nullptr ? PyExc_Exception : g_error)
                         : nb::object(nb::make_tuple(nb::borrow(g_error), nb::borrow(second_base)));
  const std::string full = std::string("pace.") + name;
  PyObject* const error = PyErr_NewException(full.c_str(), bases.ptr(), nullptr);
  if (error == nullptr) throw nb::python_error();
  module.attr(name) = nb::borrow(error);
  return error;
}

}  // namespace

void RegisterErrors(nb::module_& module) {
  g_error = NewError(module, "Error", nullptr);
  const auto set = [&](StatusCode code, const char* name, PyObject* base) {
    g_errors[static_cast<int>(code)] = NewError(module, name, base);
  };
  set(StatusCode::kInvalidArgument, "InvalidArgument", PyExc_ValueError);
  set(StatusCode::kNotFound, "NotFound", PyExc_LookupError);
  set(StatusCode::kDataLoss, "DataLoss", PyExc_ValueError);
  set(StatusCode::kUnavailable, "Unavailable", PyExc_RuntimeError);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const StatusError& error) {
          PyErr_SetString(g_errors[static_cast<int>(error.status.code())],
                          error.status.message().c_str());
        }
      },
      nullptr);
}

}  // namespace pace::python

NB_MODULE(_core, module) {
  using namespace pace::python;
  module.doc() = "The compiled part of pace; import pace instead.";
  RegisterErrors(module);
  BindSettings(module);
  BindGroups(module);
  BindPolicies(module);
  BindSession(module);
  BindCoordinator(module);
  BindSimulator(module);
  BindRecords(module);
  module.attr("__version__") = std::string(pace::PaceVersion());
}
