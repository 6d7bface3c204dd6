#ifndef CLAIMD_SERVER_RPC_WIRE_CHECK_H_
#define CLAIMD_SERVER_RPC_WIRE_CHECK_H_

#include <vector>

#include "absl/strings/string_view.h"

#include "google/protobuf/descriptor.h"
#include "server/arbiter/errors.h"

namespace claimd::rpc {

// Why bytes could not be parsed as 'type': each string that is not UTF-8 by its field path, or that
// the bytes are no protobuf message. Never empty. Bounded in depth and in the number of violations.
// Pure.
std::vector<arbiter::FieldViolation> ExplainParseFailure(const google::protobuf::Descriptor& type,
                                                         absl::string_view bytes);

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_WIRE_CHECK_H_
