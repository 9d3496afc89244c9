# pace_library(name SRCS ... DEPS ...)   one library per folder of src/
# pace_test(name SRCS ... DEPS ...)      one GoogleTest binary, registered with ctest
# pace_fuzzer(name SRCS ... DEPS ...)    a libFuzzer target, and its seed replay in ctest
#
# Targets only, no global flags: warnings, sanitizers and linker come through
# the private interface target pace_build_flags.

include(GoogleTest)
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

add_library(pace_build_flags INTERFACE)
target_compile_options(pace_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -Werror -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overlapping copies inside std::string that do not exist.
  target_compile_options(pace_build_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pace_build_flags INTERFACE -Wthread-safety)
endif()
target_compile_definitions(pace_build_flags INTERFACE _GLIBCXX_ASSERTIONS)

find_program(PACE_MOLD mold)
if(PACE_MOLD)
  check_linker_flag(CXX -fuse-ld=mold PACE_HAS_MOLD)
  if(PACE_HAS_MOLD)
    target_link_options(pace_build_flags INTERFACE -fuse-ld=mold)
  endif()
endif()

if(PACE_SANITIZE)
  target_compile_options(pace_build_flags INTERFACE
    -fsanitize=${PACE_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(pace_build_flags INTERFACE -fsanitize=${PACE_SANITIZE})
endif()

find_program(PACE_CCACHE ccache)
if(PACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PACE_CCACHE})
endif()

function(pace_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(pace_${name} STATIC ${ARG_SRCS})
  add_library(pace::${name} ALIAS pace_${name})
  target_include_directories(pace_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(pace_${name} PUBLIC ${ARG_DEPS}
    PRIVATE ${ARG_PRIVATE_DEPS} pace_build_flags)
endfunction()

function(pace_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} pace_build_flags)
endfunction()

function(pace_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main pace_build_flags)
  target_compile_definitions(${name} PRIVATE
    PACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PACE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "PACE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()

function(pace_fuzzer name)
  if(NOT PACE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} pace_build_flags)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
