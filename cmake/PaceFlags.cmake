# pace_build_flags: the one private interface target through which warnings,
# sanitizers and the linker reach every target of ours. No global flags.

include(CheckLinkerFlag)

add_library(pace_build_flags INTERFACE)
target_compile_options(pace_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough
  # A project that contains this one may use a compiler with warnings we have not seen; so may a
  # machine that installs the Python package.
  $<$<AND:$<BOOL:${PROJECT_IS_TOP_LEVEL}>,$<NOT:$<BOOL:${PACE_PYTHON}>>>:-Werror>
  -fno-omit-frame-pointer
  # A product and a sum round twice on every processor. Compilers for AArch64 would fuse
  # them, and what promises bits (verdicts, simulations) would depend on the machine.
  -ffp-contract=off
  # Messages name src/pool/pool.cc, not where this machine keeps the checkout.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overlapping copies inside std::string that do not exist.
  target_compile_options(pace_build_flags INTERFACE -Wno-restrict)
  # It would collect garbage each time its memory has grown from one precompiled header to two,
  # a twentieth of its time. No file of ours needs a gigabyte more.
  target_compile_options(pace_build_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1048576>")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pace_build_flags INTERFACE -Wthread-safety)
endif()
target_compile_definitions(pace_build_flags INTERFACE _GLIBCXX_ASSERTIONS)

# A linker that is faster than the compiler's own, where there is one. Not mold 1, which Debian 12 has:
# some of its links never end, and it lets the read-only region (RELRO) begin at thread-local data, which
# may lie in a page that is not mapped, so that a program does not start.
find_program(PACE_LLD NAMES ld.lld ld.lld-19)
find_program(PACE_MOLD mold)
set(fast_linker)
if(PACE_LLD)
  # g++ looks for it by its plain name.
  file(REAL_PATH ${PACE_LLD} lld)
  cmake_path(GET lld PARENT_PATH lld_folder)
  set(fast_linker -fuse-ld=lld -B${lld_folder})
elseif(PACE_MOLD)
  execute_process(COMMAND ${PACE_MOLD} --version OUTPUT_VARIABLE mold_version ERROR_QUIET)
  if(NOT mold_version MATCHES "mold [01]\\.")
    set(fast_linker -fuse-ld=mold)
  endif()
endif()
if(fast_linker)
  check_linker_flag(CXX "${fast_linker}" PACE_HAS_FAST_LINKER)
  if(PACE_HAS_FAST_LINKER)
    target_link_options(pace_build_flags INTERFACE ${fast_linker})
  endif()
endif()

find_program(PACE_CCACHE ccache)
if(PACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PACE_CCACHE})
endif()

# Optimising a test's own files takes longer than running them; OPTIMIZED is for the
# tests that loop for seconds.
set(PACE_TEST_OPTIONS -O0)
set(PACE_OPTIMIZED_TEST_OPTIONS -O1)
# Kernels are optimised in every build type.
set(PACE_KERNEL_OPTIONS -O3)
if(PACE_SANITIZE)
  set(PACE_KERNEL_OPTIONS -O1)
endif()
# COLD libraries: users never wait for them long enough to notice the difference.
set(PACE_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
if(PACE_SANITIZE OR CMAKE_CROSSCOMPILING)
  set(PACE_COLD_OPTIONS -O0)
endif()
# The same for files with tensors. There is one precompiled header of torch, for optimised files, and
# g++ refuses it in others from version 13 on.
set(PACE_COLD_TORCH_OPTIONS ${PACE_COLD_OPTIONS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(PACE_COLD_TORCH_OPTIONS)
endif()

# What ctest sets for every test of a sanitizer build.
set(PACE_TEST_ENVIRONMENT "PACE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
if(PACE_SANITIZE)
  target_compile_options(pace_build_flags INTERFACE
    -fsanitize=${PACE_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(pace_build_flags INTERFACE -fsanitize=${PACE_SANITIZE})
  if(PACE_SANITIZE MATCHES "address.*undefined")
    # The address sanitizer checks the same accesses; this check takes a seventh of a compilation.
    target_compile_options(pace_build_flags INTERFACE -fno-sanitize=object-size)
  endif()
  # Inlining what sanitizers have added makes code longer and hardly faster.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(pace_build_flags INTERFACE "SHELL:-mllvm -inline-threshold=25")
  endif()
  # Debian's clang looks for its own version of the symbolizer alone; any will do.
  find_program(PACE_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
  set(symbolizer "")
  if(PACE_SYMBOLIZER)
    set(symbolizer "external_symbolizer_path=${PACE_SYMBOLIZER}:")
  endif()
  list(APPEND PACE_TEST_ENVIRONMENT
    "ASAN_OPTIONS=${symbolizer}detect_leaks=1"
    "UBSAN_OPTIONS=${symbolizer}print_stacktrace=1"
    "TSAN_OPTIONS=${symbolizer}halt_on_error=1:second_deadlock_stack=1")
endif()

# For libraries alone.
add_library(pace_library_flags INTERFACE)

if(PACE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PACE_FUZZ = ON: libFuzzer needs clang (use the preset asan)")
  endif()
  # Coverage in the libraries, which is what libFuzzer explores; tests need none.
  target_compile_options(pace_library_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(pace_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
