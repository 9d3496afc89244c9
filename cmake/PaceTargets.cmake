# How folders declare what they hold:
#
#   pace_library(pool SRCS pool.cc DEPS pace::control [TORCH] [COLD] [FUZZED]
#                [LOOPS | LOOPS_WITHOUT_THREADS])
#   pace_binary(pace SRCS main.cc DEPS pace::sim [COLD])
#   pace_test(pool_test SRCS pool_test.cc DEPS pace::pool
#             [HEAVY] [OPTIMIZED] [TORCH] [SAME_BITS] [THREADS])
#   pace_fuzzer(snapshot_fuzz SRCS snapshot_fuzz.cc DEPS pace::pool [SEEDS seeds/snapshot])
#   pace_file_options(kernels.cc -mavx2)
#   pace_python_test(layers_test SCRIPT layers_test.py [HEAVY] [PEERS] [NEEDS pace])
#
# TORCH: its files see tensors. COLD: its speed does not matter (settings, commands, reports), so it
# is compiled with little optimisation. FUZZED: a COLD library that a fuzzer explores, and which
# therefore reports its coverage. LOOPS: a library whose tests run so long that it is optimised under
# sanitizers, too, as no other without tensors is; LOOPS_WITHOUT_THREADS: under all but the thread
# sanitizer, which runs few of its tests. OPTIMIZED: the test's own files are optimised.
# PEERS: runs in the Python that has torch and, where scripts/setup could install them, the packages
# to compare with.
#
# SAME_BITS: promises the same bits on every processor; what `make test` runs of the cross
# build. THREADS: has threads of its own; what `make test` runs under the thread sanitizer.
#
# ctest labels: `unit` by default, `heavy` with HEAVY (end to end, or long: the
# sanitizer builds leave these out), `fuzz` for fuzzers; also `same_bits` and `threads`. The
# targets pace_tests (everything ctest runs), pace_unit_tests, pace_fuzzers,
# pace_same_bits_tests and pace_threads_tests build them.
#
# A test reads PACE_SOURCE_DIR and PACE_BINARY_DIR, as macros in C++ and as
# environment variables in Python.

add_custom_target(pace_tests)
add_custom_target(pace_unit_tests)
add_custom_target(pace_fuzzers)
add_custom_target(pace_same_bits_tests)
add_custom_target(pace_threads_tests)
add_dependencies(pace_tests pace_unit_tests pace_fuzzers)

function(pace_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH;COLD;FUZZED;LOOPS;LOOPS_WITHOUT_THREADS" ""
    "SRCS;DEPS;PRIVATE_DEPS")
  _pace_reject_unknown(${name} "${ARG_UNPARSED_ARGUMENTS}")
  add_library(pace_${name} STATIC ${ARG_SRCS})
  add_library(pace::${name} ALIAS pace_${name})
  target_include_directories(pace_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pace>)
  target_link_libraries(pace_${name} PUBLIC ${ARG_DEPS}
    PRIVATE ${ARG_PRIVATE_DEPS} $<BUILD_INTERFACE:pace_build_flags>)
  if(ARG_LOOPS_WITHOUT_THREADS AND NOT PACE_SANITIZE MATCHES thread)
    set(ARG_LOOPS ON)
  endif()
  if(PACE_SANITIZE AND ARG_LOOPS)
    set(ARG_COLD OFF)
  elseif(PACE_SANITIZE AND NOT ARG_COLD AND NOT ARG_TORCH)
    # Fuzzers may explore it.
    set(ARG_COLD ON)
    set(ARG_FUZZED ON)
  endif()
  if(ARG_COLD AND ARG_FUZZED AND PACE_FUZZ)
    target_link_libraries(pace_${name} PRIVATE $<BUILD_INTERFACE:pace_library_flags>)
    _pace_make_cold(pace_${name} fuzzed)
  elseif(ARG_COLD AND ARG_TORCH)
    target_link_libraries(pace_${name} PUBLIC pace::torch)
    _pace_make_cold(pace_${name} torch)
  elseif(ARG_COLD)
    set_target_properties(pace_${name} PROPERTIES PACE_IS_COLD ON)
    _pace_make_cold(pace_${name} cold)
  else()
    target_link_libraries(pace_${name} PRIVATE $<BUILD_INTERFACE:pace_library_flags>)
    if(ARG_TORCH)
      target_link_libraries(pace_${name} PUBLIC pace::torch)
      _pace_use_header(pace_${name} torch)
    else()
      _pace_use_header(pace_${name} standard)
    endif()
  endif()
  _pace_unity(pace_${name} "${ARG_SRCS}")
endfunction()

function(_pace_make_cold target header)
  if(header STREQUAL "torch")
    target_compile_options(${target} PRIVATE ${PACE_COLD_TORCH_OPTIONS})
  else()
    target_compile_options(${target} PRIVATE ${PACE_COLD_OPTIONS})
  endif()
  _pace_use_header(${target} ${header})
endfunction()

function(pace_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "COLD" "" "SRCS;DEPS")
  _pace_reject_unknown(${name} "${ARG_UNPARSED_ARGUMENTS}")
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE pace_build_flags ${ARG_DEPS})
  if(ARG_COLD)
    _pace_make_cold(${name} cold)
  endif()
  _pace_unity(${name} "${ARG_SRCS}")
endfunction()

function(pace_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "HEAVY;OPTIMIZED;TORCH;SAME_BITS;THREADS" "" "SRCS;DEPS")
  _pace_reject_unknown(${name} "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT PACE_TESTS)
    return()
  endif()
  pace_binary(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    PACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PACE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(ARG_TORCH)
    _pace_make_cold(${name} torch)
  elseif(ARG_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${PACE_OPTIMIZED_TEST_OPTIONS})
    _pace_use_header(${name} optimized_tests)
  else()
    target_compile_options(${name} PRIVATE ${PACE_TEST_OPTIONS})
    _pace_use_header(${name} tests)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  _pace_label_test(${name} "${ARG_HEAVY}")
  foreach(kind same_bits threads)
    string(TOUPPER ${kind} option)
    if(ARG_${option})
      set_property(TEST ${name} APPEND PROPERTY LABELS ${kind})
      add_dependencies(pace_${kind}_tests ${name})
    endif()
  endforeach()
  if(ARG_HEAVY)
    add_dependencies(pace_tests ${name})
  else()
    add_dependencies(pace_unit_tests ${name})
  endif()
endfunction()

# For one file of a target. Precompiled headers are of other options.
function(pace_file_options file)
  set_source_files_properties(${file} PROPERTIES
    COMPILE_OPTIONS "${ARGN}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Python's tests look at the sources or at the release binary; under a
# sanitizer or for another processor they would add nothing, so those builds do not
# register them.
function(pace_python_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "HEAVY;PEERS;VERL;VLLM" "SCRIPT" "NEEDS")
  _pace_reject_unknown(${name} "${ARG_UNPARSED_ARGUMENTS}")
  if(PACE_SANITIZE OR CMAKE_CROSSCOMPILING OR NOT PACE_TESTS)
    return()
  endif()
  set(python Python3::Interpreter)
  if(ARG_PEERS AND torch_python)
    set(python ${torch_python})
  endif()
  # Only `ctest --build-config peers` runs those.
  set(configurations)
  if(ARG_VLLM)
    set(python ${PROJECT_SOURCE_DIR}/.venv-vllm/bin/python)
    set(configurations CONFIGURATIONS peers)
  elseif(ARG_VERL)
    set(python ${PROJECT_SOURCE_DIR}/.venv-verl/bin/python)
    set(configurations CONFIGURATIONS peers)
  endif()
  add_test(NAME ${name}
    COMMAND ${python} -B ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SCRIPT} ${configurations})
  _pace_label_test(${name} "${ARG_HEAVY}")
  if(ARG_VLLM OR ARG_VERL)
    set_tests_properties(${name} PROPERTIES LABELS peers)
  endif()
  if(ARG_PEERS)
    set_tests_properties(${name} PROPERTIES COST 50)
  endif()
  foreach(target IN LISTS ARG_NEEDS)
    add_dependencies(pace_tests ${target})
  endforeach()
endfunction()

function(pace_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SEEDS" "SRCS;DEPS")
  _pace_reject_unknown(${name} "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT PACE_FUZZ OR NOT PACE_TESTS)
    return()
  endif()
  foreach(library IN LISTS ARG_DEPS)
    get_target_property(is_cold ${library} PACE_IS_COLD)
    if(is_cold)
      message(FATAL_ERROR "${name}: ${library} is COLD and must be FUZZED for libFuzzer to explore it")
    endif()
  endforeach()
  pace_binary(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  # A fuzz target spends its time in the library that it calls.
  _pace_make_cold(${name} cold)
  add_dependencies(pace_fuzzers ${name})

  # libFuzzer adds what it finds to the first folder and only reads the second. It prints only
  # failures: a symbolizer that names each new function can hang on a busy machine. With a seed
  # other than 0 a build tries the same inputs each time, as many as the seconds allow.
  set(found ${PROJECT_BINARY_DIR}/fuzz/${name})
  file(MAKE_DIRECTORY ${found}/corpus)
  set(corpora ${found}/corpus)
  if(ARG_SEEDS)
    list(APPEND corpora ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SEEDS})
  endif()
  add_test(NAME ${name} COMMAND ${name}
    -seed=${PACE_FUZZ_SEED} -max_total_time=${PACE_FUZZ_SECONDS} -timeout=60 -rss_limit_mb=2048
    -verbosity=0 -print_funcs=0
    -artifact_prefix=${found}/ -print_final_stats=1 ${corpora})
  math(EXPR timeout "${PACE_FUZZ_SECONDS} + 600")
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout}
    ENVIRONMENT "${PACE_TEST_ENVIRONMENT}")
endfunction()

# The timeout is a guard against a hang: far above what a busy machine needs. What takes long
# begins first, so that no core waits for it in the end.
function(_pace_label_test name heavy)
  set(label unit)
  if(heavy)
    set(label heavy)
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1800
    ENVIRONMENT "${PACE_TEST_ENVIRONMENT};PACE_BINARY_DIR=${PROJECT_BINARY_DIR}")
endfunction()

function(_pace_reject_unknown name arguments)
  if(arguments)
    message(FATAL_ERROR "${name}: unknown arguments: ${arguments}")
  endif()
endfunction()
