#include "tests/e2e/harness/state_fingerprint.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/refusal.h"

namespace claimd::e2e {

std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

void PrintTo(const StateFingerprint& state, std::ostream* out) {
  v1::ShardManifest head;
  *out << "revision " << state.revision << ", " << state.versions.size() << " versions, "
       << state.claims.size() << " ended or held claims, head "
       << (head.ParseFromString(state.head) ? head.ShortDebugString() : state.head);
}

std::vector<v1::ShardManifest> AllVersions(const Client& client, const Shard& shard) {
  auto request = For<v1::ListManifestVersionsRequest>(shard);
  request.set_view(v1::SHARD_VIEW_FULL);
  request.set_page_size(1000);
  std::vector<v1::ShardManifest> all;
  do {
    const auto page = client.Call(request);
    if (page.status.error_code() == grpc::StatusCode::NOT_FOUND) break;
    EXPECT_TRUE(IsOk(page.status)) << "ListManifestVersions";
    all.insert(all.end(), page.response.manifests().begin(), page.response.manifests().end());
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

std::vector<v1::ClaimRecord> AllClaims(const Client& client, const Shard& shard) {
  auto request = For<v1::ListClaimsRequest>(shard);
  request.set_page_size(1000);
  std::vector<v1::ClaimRecord> all;
  do {
    const auto page = client.Call(request);
    if (page.status.error_code() == grpc::StatusCode::NOT_FOUND) break;
    EXPECT_TRUE(IsOk(page.status)) << "ListClaims";
    all.insert(all.end(), page.response.claims().begin(), page.response.claims().end());
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

uint64_t Revision(const Client& client) {
  const auto info = client.Call(v1::GetServerInfoRequest());
  EXPECT_TRUE(IsOk(info.status)) << "GetServerInfo";
  return info.response.revision();
}

StateFingerprint FingerprintOf(const Client& client, const Shard& shard) {
  StateFingerprint state;
  const auto head = client.Get(shard);
  state.head = head.ok() ? Bytes(head.response.manifest()) : Describe(head.status);
  for (const auto& manifest : AllVersions(client, shard)) state.versions.push_back(Bytes(manifest));
  for (const auto& claim : AllClaims(client, shard)) state.claims.push_back(Bytes(claim));
  state.revision = Revision(client);
  return state;
}

NothingMoves::NothingMoves(const Client& client, Shard shard)
    : client_(client), shard_(std::move(shard)), before_(FingerprintOf(client_, shard_)) {}

NothingMoves::~NothingMoves() {
  EXPECT_EQ(before_, FingerprintOf(client_, shard_)) << "a call that must change nothing did";
}

}  // namespace claimd::e2e
