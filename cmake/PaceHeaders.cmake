# Precompiled headers. Parsing the standard library, GoogleTest or torch is a large part
# of most files' compilation; each is parsed once for all that have the same flags:
#
#   standard         libraries
#   cold             COLD libraries
#   tests            tests, with GoogleTest
#   optimized_tests  the same for OPTIMIZED tests
#   torch            files with tensors (PaceTorch.cmake)

option(PACE_PRECOMPILE "Precompile standard headers and GoogleTest" ON)

# ccache accepts precompiled headers only when told that their dates are noise.
if(PACE_CCACHE)
  set(pace_header_launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${PACE_CCACHE})
endif()

function(_pace_header name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;DEPS;OPTIONS")
  add_library(pace_${name}_header OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(pace_${name}_header PRIVATE pace_build_flags ${ARG_DEPS})
  target_compile_options(pace_${name}_header PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(pace_${name}_header PRIVATE ${ARG_HEADERS})
  _pace_header_flags(pace_${name}_header)
endfunction()

function(_pace_use_header target name)
  if(NOT TARGET pace_${name}_header)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM pace_${name}_header)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND name MATCHES "standard|cold|optimized")
    # From a precompiled header g++ no longer knows which lines are the system's. Where it
    # optimises it then warns about copies inside std::string that do not exist.
    foreach(kind array-bounds maybe-uninitialized stringop-overflow stringop-overread)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-${kind}>)
    endforeach()
  endif()
  target_compile_options(${target} PRIVATE
    $<TARGET_PROPERTY:pace_${name}_header,INTERFACE_COMPILE_OPTIONS>)
  _pace_header_flags(${target})
endfunction()

function(_pace_header_flags target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  if(pace_header_launcher)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${pace_header_launcher}")
  endif()
endfunction()

if(PACE_PRECOMPILE)
  set(standard_headers ${PROJECT_SOURCE_DIR}/cmake/standard_headers.h)
  _pace_header(standard HEADERS ${standard_headers} DEPS pace_library_flags)
  _pace_header(cold HEADERS ${standard_headers} OPTIONS ${PACE_COLD_OPTIONS})
  if(PACE_FUZZ)
    _pace_header(fuzzed HEADERS ${standard_headers} DEPS pace_library_flags
      OPTIONS ${PACE_COLD_OPTIONS})
  endif()
  if(PACE_TESTS)
    set(test_headers <gtest/gtest.h> ${standard_headers})
    _pace_header(tests HEADERS ${test_headers} DEPS GTest::gtest_main OPTIONS ${PACE_TEST_OPTIONS})
    _pace_header(optimized_tests HEADERS ${test_headers} DEPS GTest::gtest_main
      OPTIONS ${PACE_OPTIMIZED_TEST_OPTIONS})
  endif()
endif()
