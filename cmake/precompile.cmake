# Under POSENC_PRECOMPILE (tests/run.sh), the headers of others that most of our files
# include are read once and not by each, which halves what a file costs. Builds by hand
# do without, and so show that each file includes what it uses.
option(POSENC_PRECOMPILE "Precompile the headers of others" OFF)

# posenc_share_precompiled(target set): the target is compiled with a set of those below,
# and with its flags.
function(posenc_share_precompiled target set)
  if(POSENC_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM posenc_${set}_headers)
    if(set STREQUAL "test")
      target_compile_options(${target} PRIVATE ${POSENC_TEST_FLAGS})
    endif()
  endif()
endfunction()

if(NOT POSENC_PRECOMPILE)
  return()
endif()

set(headers <algorithm> <array> <cmath> <cstdint> <functional> <memory> <optional> <span> <string>
  <utility> <vector> <absl/container/flat_hash_map.h> <absl/status/statusor.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <posenc/v1/service.pb.h>)
file(CONFIGURE OUTPUT nothing.cc CONTENT "int main() {}\n")

add_library(posenc_library_headers STATIC ${PROJECT_BINARY_DIR}/nothing.cc)
target_link_libraries(posenc_library_headers PRIVATE posenc_options posenc_proto absl::str_format
  absl::flat_hash_map absl::statusor)
target_precompile_headers(posenc_library_headers PRIVATE ${headers})

if(NOT POSENC_LIB_ONLY)
  add_library(posenc_grpc_headers STATIC ${PROJECT_BINARY_DIR}/nothing.cc)
  target_link_libraries(posenc_grpc_headers PRIVATE posenc_options posenc_grpc)
  target_precompile_headers(posenc_grpc_headers
    PRIVATE ${headers} <grpcpp/grpcpp.h> <posenc/v1/service.grpc.pb.h>)
endif()

# Programs; a test is compiled quickly rather than well, and gRPC's users have -pthread.
set(POSENC_TEST_FLAGS -O1 -pthread)
if(POSENC_SANITIZE)
  set(POSENC_TEST_FLAGS -O0 -pthread)
endif()
find_package(GTest CONFIG REQUIRED)
add_executable(posenc_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/nothing.cc)
target_link_libraries(posenc_test_headers PRIVATE posenc_options posenc_proto GTest::gmock)
target_compile_options(posenc_test_headers PRIVATE ${POSENC_TEST_FLAGS})
target_precompile_headers(posenc_test_headers
  PRIVATE ${headers} <gmock/gmock.h> <google/protobuf/text_format.h> <gtest/gtest.h>)
