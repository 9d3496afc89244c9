// Coordinator: events and commands as JSON texts; pace/coordinator.py turns them into dictionaries.
#include "coordinator/coordinator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind/convert.h"
#include "bind/policies.h"
#include "config/settings.h"
#include "coordinator/event_json.h"

namespace pace::python {
namespace {

using namespace nb::literals;

// Collects the decisions of each call.
class DecisionLog final : public CoordinatorObserver {
 public:
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion>) override {
    decisions_.emplace_back(group.id.value(), decision);
  }
  std::vector<std::pair<int64_t, Decision>> Take() { return std::exchange(decisions_, {}); }

 private:
  std::vector<std::pair<int64_t, Decision>> decisions_;
};

class PythonCoordinator {
 public:
  PythonCoordinator(const Settings& settings, const nb::object& admission, const nb::object& supply)
      : coordinator_(CoordinatorOptions::Of(settings), AdmissionOf(settings, admission),
                     SupplyOf(settings, supply), &log_) {}

  std::vector<std::string> Handle(const std::string& json) {
    const Event event = Take(EventFromJson(json));
    Check(coordinator_.Validate(event));
    return Texts(coordinator_.Handle(event));
  }
  std::vector<std::string> Owed() const { return Texts(coordinator_.Owed()); }
  nb::list Decisions() {
    nb::list out;
    for (auto& [group, decision] : log_.Take()) out.append(nb::make_tuple(group, decision));
    return out;
  }
  std::string Save() const { return ToJson(coordinator_.Save()); }
  void Restore(const std::string& text) {
    if (coordinator_.num_events() > 0) Refuse("restore: this coordinator has handled events");
    Check(coordinator_.Restore(Take(SnapshotFromJson(text, "snapshot"))));
  }
  const Coordinator& get() const { return coordinator_; }

 private:
  static std::unique_ptr<AdmissionPolicy> AdmissionOf(const Settings& settings,
                                                      const nb::object& policy) {
    Check(settings.Validate());
    if (!policy.is_none()) return AdmissionFromPython(policy);
    Check(CheckBuiltIn(settings.admission));
    return MakeAdmissionPolicy(settings.admission, settings.batch.num_groups,
                               static_cast<uint64_t>(settings.run.seed));
  }
  static std::unique_ptr<SupplyPolicy> SupplyOf(const Settings& settings,
                                                const nb::object& policy) {
    if (!policy.is_none()) return SupplyFromPython(policy);
    return MakeSupplyPolicy(settings.supply, settings.batch.num_groups);
  }
  static std::vector<std::string> Texts(const std::vector<Command>& commands) {
    std::vector<std::string> out;
    for (const Command& command : commands) out.push_back(CommandToJson(command));
    return out;
  }

  DecisionLog log_;
  Coordinator coordinator_;
};

}  // namespace

void BindCoordinator(nb::module_& module) {
  nb::class_<PythonCoordinator>(module, "Coordinator")
      .def(nb::init<const Settings&, const nb::object&, const nb::object&>(), "settings"_a,
           "admission"_a = nb::none(), "supply"_a = nb::none())
      .def("handle", &PythonCoordinator::Handle, "event"_a)
      .def("owed", &PythonCoordinator::Owed)
      .def("decisions", &PythonCoordinator::Decisions)
      .def("save", &PythonCoordinator::Save)
      .def("restore", &PythonCoordinator::Restore, "text"_a)
      .def("why_waiting", [](const PythonCoordinator& self) { return self.get().WhyWaiting(); })
      .def_prop_ro("version",
                   [](const PythonCoordinator& self) { return self.get().version().step(); })
      .def_prop_ro("stopped", [](const PythonCoordinator& self) { return self.get().stopped(); })
      .def_prop_ro("num_events",
                   [](const PythonCoordinator& self) { return self.get().num_events(); })
      .def_prop_ro("occupancy",
                   [](const PythonCoordinator& self) { return self.get().pool().occupancy(); })
      .def_prop_ro("served",
                   [](const PythonCoordinator& self) { return StepOf(self.get().served()); })
      .def_prop_ro("supply_view",
                   [](const PythonCoordinator& self) { return self.get().supply_view(); });
}

}  // namespace pace::python
