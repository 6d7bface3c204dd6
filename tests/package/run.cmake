# Installs the client library into a directory of its own, copies the consumer project next to it,
# builds the consumer there and runs it. Arguments: WAY (cmake, pkgconfig), BUILD_DIR, COMPILER,
# LIBDIR, VERSION.
execute_process(COMMAND mktemp -d -t claimd-package-XXXXXX OUTPUT_VARIABLE root
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(prefix ${root}/prefix)
set(source ${root}/consumer)
set(binary ${root}/build/consumer)

function(fail text)
  file(REMOVE_RECURSE ${root})
  message(FATAL_ERROR "${text}")
endfunction()

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${root} RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    fail("${command}\nfailed with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix} --component client)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/consumer DESTINATION ${root})

# The example of README.md (or of the section that is meant for it) is built with the consumer.
set(root_of_source ${CMAKE_CURRENT_LIST_DIR}/../..)
set(fence "```cpp\n")
set(start -1)
foreach(document IN ITEMS README.md client/README_SECTION.md)
  if(start EQUAL -1 AND EXISTS ${root_of_source}/${document})
    file(READ ${root_of_source}/${document} text)
    string(FIND "${text}" "${fence}" start)
  endif()
endforeach()
if(start EQUAL -1)
  fail("no C++ example is in README.md")
endif()
string(LENGTH "${fence}" fence_length)
math(EXPR start "${start} + ${fence_length}")
string(SUBSTRING "${text}" ${start} -1 text)
string(FIND "${text}" "```" end)
string(SUBSTRING "${text}" 0 ${end} example)
file(WRITE ${source}/readme_example.cc "${example}")
file(READ ${root_of_source}/client/examples/first_claim.cc tested)
if(NOT example STREQUAL tested)
  fail("the example of README.md is not client/examples/first_claim.cc, which the tests run")
endif()

# The headers of the interface and nothing else.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
set(expected claimd/client.h claimd/errors.h claimd/json.h claimd/options.h claimd/range.h
             claimd/shard_claim.h claimd/types.h)
if(NOT headers STREQUAL expected)
  fail("installed headers are ${headers}")
endif()

if(WAY STREQUAL "cmake")
  run(${CMAKE_COMMAND} -S ${source} -B ${root}/build -DCMAKE_PREFIX_PATH=${prefix}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCLAIMD_VERSION=${VERSION})
  run(${CMAKE_COMMAND} --build ${root}/build)
else()
  file(MAKE_DIRECTORY ${root}/build)
  # The prefix is set anew, as for a package that is unpacked elsewhere.
  set(pkgconfig ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${prefix}/${LIBDIR}/pkgconfig pkg-config
                --define-variable=prefix=${prefix})
  run(${pkgconfig} --modversion claimd)
  string(STRIP "${output}" version)
  if(NOT version STREQUAL VERSION)
    fail("claimd.pc says version ${version}, not ${VERSION}")
  endif()
  run(${pkgconfig} --cflags --libs claimd)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${COMPILER} -std=c++17 -Wall -Wextra -Werror ${source}/main.cc -o ${binary} ${flags})
endif()
run(${binary})

# What the program needs at run time: what the package names, and nothing of the server's.
run(readelf --dynamic ${binary})
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]\n]*\\]" needed "${output}")
foreach(entry IN LISTS needed)
  if(NOT entry MATCHES
     "\\[(libgrpc|libgpr|libprotobuf|libabsl_|libstdc|libm\\.|libgcc_s|libc\\.|libpthread|ld-linux|libaddress_sorting|libupb|libssl|libcrypto|libz\\.|libcares|libre2)")
    fail("the consumer needs more than the package's dependencies: ${entry}")
  endif()
endforeach()
if(NOT needed)
  fail("readelf named no library:\n${output}")
endif()
file(REMOVE_RECURSE ${root})
