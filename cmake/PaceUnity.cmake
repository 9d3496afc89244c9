# Unity builds: files of one target are compiled several at a time, which parses what they
# include once. unity_groups.py chooses the groups when CMake configures.

option(PACE_UNITY "Compile several files at a time: faster from nothing, slower after an edit" ON)

# Called for every target of ours, in its own folder.
function(_pace_unity target sources)
  if(NOT PACE_UNITY)
    return()
  endif()
  set(files "")
  foreach(source IN LISTS sources)
    # Files with options of their own stay apart.
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(source MATCHES "\\.cc$" AND NOT options AND NOT definitions AND
        EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      list(APPEND files ${source})
    endif()
  endforeach()
  list(LENGTH files num_files)
  if(num_files LESS 2)
    return()
  endif()
  list(JOIN files "\t" files)
  set_property(GLOBAL APPEND_STRING PROPERTY PACE_UNITY_TARGETS
    "${target}\t${CMAKE_CURRENT_SOURCE_DIR}\t${files}\n")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes an included source for a header, whose types other files would see.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

function(_pace_choose_unity_groups)
  get_property(targets GLOBAL PROPERTY PACE_UNITY_TARGETS)
  set(groups ${PROJECT_BINARY_DIR}/unity_groups.cmake)
  file(WRITE ${PROJECT_BINARY_DIR}/unity_targets.txt "${targets}")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py
      ${PROJECT_BINARY_DIR}/unity_targets.txt ${groups}
    COMMAND_ERROR_IS_FATAL ANY)
  include(${groups})
endfunction()

if(PACE_UNITY)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL _pace_choose_unity_groups)
endif()
