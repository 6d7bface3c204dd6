#ifndef CLAIMD_CLIENT_SRC_CONVERT_H_
#define CLAIMD_CLIENT_SRC_CONVERT_H_

#include "absl/time/time.h"
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "claimd/types.h"

// Between the public structs and the wire. Fields that this library does not know survive the way
// there and back in 'unknown_fields'.
namespace claimd::internal {

ShardManifest FromProto(const v1::ShardManifest& proto);
ClaimInfo FromProto(const v1::Claim& proto);
ClaimRecord FromProto(const v1::ClaimRecord& proto);
ServerInfo FromProto(const v1::GetServerInfoResponse& proto);
absl::Duration FromProto(const google::protobuf::Duration& proto);

v1::ShardManifest ToProto(const ShardManifest& manifest);
v1::Claim ToProto(const ClaimInfo& claim);
v1::ClaimRecord ToProto(const ClaimRecord& record);
v1::GetServerInfoResponse ToProto(const ServerInfo& info);
v1::ShardStatus ToProto(ShardStatus status);

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_CONVERT_H_
