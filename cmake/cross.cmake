# Toolchain file for the other of the two processors that pace supports: programs are
# cross-compiled and run here by qemu-user. scripts/setup puts compiler, emulator and the
# libraries (.deps/cross) in place.
execute_process(COMMAND uname -m OUTPUT_VARIABLE host OUTPUT_STRIP_TRAILING_WHITESPACE)
if(host STREQUAL "x86_64")
  set(other aarch64)
elseif(host STREQUAL "aarch64")
  set(other x86_64)
else()
  message(FATAL_ERROR "${host}: the cross build knows x86_64 and aarch64")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${other})
set(triple ${other}-linux-gnu)
set(CMAKE_CXX_COMPILER ${triple}-g++)

# Programs such as Python are this machine's; libraries and headers are the other's.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../.deps/cross/${other})
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# `max` has every instruction set that the emulator knows, so all kernels are tested.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${other}-static -cpu max -L /usr/${triple}
  -E LD_LIBRARY_PATH=${CMAKE_CURRENT_LIST_DIR}/../.deps/cross/${other}/usr/lib/${triple})
