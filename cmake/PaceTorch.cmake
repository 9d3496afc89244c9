# pace::torch: LibTorch as it lies in a Python installation.
#
# Which Python: -DPACE_TORCH_PYTHON, else what scripts/setup chose
# (.deps/torch-python), else .venv, else python3. torch/torch.h is never
# included: it takes half a minute per file.

set(torch_choice ${PROJECT_SOURCE_DIR}/.deps/torch-python)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${torch_choice})
set(PACE_TORCH_PYTHON "" CACHE FILEPATH "The Python whose torch is linked; empty = look for one")
set(torch_python "${PACE_TORCH_PYTHON}")
if(NOT torch_python AND EXISTS ${torch_choice})
  file(STRINGS ${torch_choice} torch_python LIMIT_COUNT 1)
endif()
if(NOT torch_python AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(torch_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
if(NOT torch_python)
  set(torch_python ${Python3_EXECUTABLE})
endif()

# Where the package lies; torch itself is not imported, which takes seconds.
set(PACE_TORCH_ROOT "" CACHE PATH "The folder of torch's package; empty = ask the Python")
set(torch_root "${PACE_TORCH_ROOT}")
if(NOT torch_root)
  execute_process(
    COMMAND ${torch_python} -c
      "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE torch_error
    RESULT_VARIABLE torch_failed)
  if(torch_failed)
    message(FATAL_ERROR "${torch_python} has no torch (run scripts/setup build, set "
      "PACE_TORCH_PYTHON, or build without LibTorch: --preset core-only)\n${torch_error}")
  endif()
endif()
if(NOT EXISTS ${torch_root}/version.py OR NOT EXISTS ${torch_root}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "${torch_root}: not the folder of an installed torch")
endif()
file(STRINGS ${torch_root}/version.py torch_version REGEX "^__version__")
string(REGEX REPLACE ".*'(.*)'.*" "\\1" PACE_TORCH_VERSION "${torch_version}")
if(PACE_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "${torch_root} has torch ${PACE_TORCH_VERSION}: must be 2.11 or later")
endif()
if(PACE_CUDA AND NOT EXISTS ${torch_root}/lib/libtorch_cuda.so)
  message(FATAL_ERROR "PACE_CUDA = ON: the torch ${PACE_TORCH_VERSION} of ${torch_root} is built "
    "for CPUs alone (name one for CUDA: PACE_TORCH_PYTHON or PACE_TORCH_ROOT)")
endif()
message(STATUS "LibTorch ${PACE_TORCH_VERSION} of ${torch_root}")

# Torch's own CMake package would look for every library of CUDA and set flags for
# all; this is what we use of it. Its include folders are system headers.
add_library(pace_torch INTERFACE)
add_library(pace::torch ALIAS pace_torch)
target_include_directories(pace_torch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
target_link_libraries(pace_torch INTERFACE
  ${torch_root}/lib/libtorch.so ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so
  Threads::Threads)
if(PACE_CUDA)
  # Nothing names a symbol of libtorch_cuda.so: it registers itself when it is loaded.
  target_link_options(pace_torch INTERFACE
    "LINKER:--push-state,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,--pop-state")
  target_link_libraries(pace_torch INTERFACE ${torch_root}/lib/libc10_cuda.so CUDA::cudart)
endif()
# libtorch_cpu.so exports parts of std::filesystem of the compiler it was built with
# (pytorch#133437); mixed with a newer libstdc++ they crash. Loaded first, the system's
# libstdc++ serves everyone.
target_link_options(pace_torch INTERFACE
  "LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state")

_pace_header(torch HEADERS <ATen/ATen.h> <torch/csrc/autograd/custom_function.h> DEPS pace_torch)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # It sees a copy past a std::vector<bool> in torch's Function::apply.
  target_compile_options(pace_torch_header PUBLIC -Wno-array-bounds -Wno-stringop-overflow)
endif()
