# Compiles one public header by itself with the Abseil headers only, and looks at what it pulls in.
# Arguments: COMPILER, HEADER, INCLUDE_DIR, WORK_DIR.
get_filename_component(name ${HEADER} NAME_WE)
set(source ${WORK_DIR}/check_${name}.cc)
file(WRITE ${source} "#include \"claimd/${name}.h\"\n#include \"claimd/${name}.h\"\nint main() {}\n")
execute_process(
  COMMAND ${COMPILER} -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only
          -I${INCLUDE_DIR} ${source}
  RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "claimd/${name}.h does not compile by itself:\n${errors}")
endif()
execute_process(COMMAND ${COMPILER} -std=c++17 -E -I${INCLUDE_DIR} ${source}
                OUTPUT_VARIABLE preprocessed COMMAND_ERROR_IS_FATAL ANY)
foreach(forbidden IN ITEMS "/grpc" "/google/protobuf/" "\\.pb\\.h" "/server/" "/client/src/"
                           "/glog/")
  string(REGEX MATCH "\n# [0-9]+ \"[^\"\n]*${forbidden}[^\"\n]*\"" found "${preprocessed}")
  if(found)
    message(FATAL_ERROR "claimd/${name}.h pulls in what is none of its users' business:${found}")
  endif()
endforeach()
