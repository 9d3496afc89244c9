# What `cmake --install` installs: the static libraries of the controller and the simulator,
# their headers under include/pace, and the package that find_package(pace) finds:
#
#   find_package(pace 0.1 REQUIRED)
#   target_link_libraries(trainer PRIVATE pace::controller)  # or pace::sim
#
# docs/library.md says which headers are stable.

include(CMakePackageConfigHelpers)

add_library(pace_controller INTERFACE)
add_library(pace::controller ALIAS pace_controller)
target_link_libraries(pace_controller INTERFACE pace::coordinator)
target_compile_features(pace_core INTERFACE cxx_std_20)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/pace)
get_directory_property(controller_folders DIRECTORY src DEFINITION controller_folders)
get_directory_property(sim_folders DIRECTORY src DEFINITION sim_folders)
foreach(folder controller ${controller_folders} ${sim_folders})
  set_target_properties(pace_${folder} PROPERTIES EXPORT_NAME ${folder})
  install(TARGETS pace_${folder} EXPORT pace-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
foreach(folder ${controller_folders} ${sim_folders})
  # Headers of tests are left out.
  install(DIRECTORY src/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pace
    FILES_MATCHING PATTERN "*.h"
    PATTERN "test_*" EXCLUDE PATTERN "naive_*" EXCLUDE PATTERN "chaos_*" EXCLUDE
    PATTERN seeds EXCLUDE)
endforeach()
install(EXPORT pace-targets NAMESPACE pace:: DESTINATION ${package})

configure_package_config_file(cmake/pace-config.cmake.in ${PROJECT_BINARY_DIR}/pace-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pace-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pace-config.cmake
  ${PROJECT_BINARY_DIR}/pace-config-version.cmake DESTINATION ${package})
