#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "claimd/client.h"
#include "tests/client/fake_environment.h"
#include "tests/client/scripted_server.h"
#include "tests/client/tcp_proxy.h"

// What the library sends, call by call, to a server that follows a script.
namespace claimd {
namespace {

using ::claimd::testing::AttachRetryDelay;
using ::claimd::testing::ConnectWith;
using ::claimd::testing::FakeEnvironment;
using ::claimd::testing::Refusal;
using ::claimd::testing::Reply;
using ::claimd::testing::ScriptedServer;
using ::claimd::testing::SentCall;
using ::claimd::testing::TcpProxy;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kShard[] = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

ClientOptions OptionsFor(const std::string& target) {
  ClientOptions options;
  options.targets = {target};
  options.claimant = "tester";
  options.labels = {{"pod", "p-1"}};
  // Real time: only a call that is held runs into it.
  options.retry.attempt_timeout = absl::Seconds(20);
  return options;
}

v1::ClaimEpochResponse Granted(const v1::ClaimEpochRequest& request, uint64_t epoch) {
  v1::ClaimEpochResponse response;
  response.set_writer_epoch(epoch);
  v1::ShardManifest* manifest = response.mutable_manifest();
  manifest->set_table(request.table());
  manifest->set_shard_id(request.shard_id());
  manifest->set_version(1);
  manifest->set_writer_epoch(epoch);
  manifest->set_current_generation(1);
  manifest->set_status(v1::SHARD_STATUS_ACTIVE);
  return response;
}

Reply Grant(const SentCall& call, uint64_t epoch) {
  return Reply::Answer(Granted(call.As<v1::ClaimEpochRequest>(), epoch));
}

class ClientCallsTest : public ::testing::Test {
 protected:
  void Serve(ScriptedServer::Script script) {
    server_ = std::make_unique<ScriptedServer>(std::move(script));
  }
  Client Connect() { return ConnectWith(OptionsFor(server_->target()), &environment_); }

  FakeEnvironment environment_;
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(ClientCallsTest, AClaimSaysWhoClaimsWhatUnderWhichSpec) {
  Serve([](const SentCall& call) { return Grant(call, 4); });
  ClaimOptions options;
  options.mode = ClaimMode::kIfFree;
  options.expected_epoch = 3;
  options.epoch_floor = 2;
  options.shard_field_values = {{"bucket", "7"}};
  options.shard_spec_fingerprint = "print";
  const auto claim = Connect().Claim("orders", kShard, 1, options);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->epoch(), 4U);

  ASSERT_THAT(server_->calls(), SizeIs(1));
  const auto request = server_->calls()[0].As<v1::ClaimEpochRequest>();
  EXPECT_EQ(request.table(), "orders");
  EXPECT_EQ(request.shard_id(), kShard);
  EXPECT_TRUE(request.has_shard_spec_id());
  EXPECT_EQ(request.shard_spec_id(), 1U);
  EXPECT_EQ(request.claimant(), "tester");
  EXPECT_EQ(request.labels().at("pod"), "p-1");
  EXPECT_EQ(request.mode(), v1::CLAIM_MODE_IF_FREE);
  EXPECT_EQ(request.expected_epoch(), 3U);
  EXPECT_EQ(request.epoch_floor(), 2U);
  EXPECT_EQ(request.shard_field_values().at("bucket"), "7");
  EXPECT_EQ(request.shard_spec_fingerprint(), "print");
  EXPECT_FALSE(request.request_id().empty());
}

TEST_F(ClientCallsTest, WithoutSpecIdNoneIsSent) {
  Serve([](const SentCall& call) { return Grant(call, 1); });
  ASSERT_TRUE(Connect().Claim("orders", kShard, std::nullopt).ok());
  const auto request = server_->calls()[0].As<v1::ClaimEpochRequest>();
  EXPECT_FALSE(request.has_shard_spec_id());
  EXPECT_FALSE(request.has_expected_epoch());
}

TEST_F(ClientCallsTest, TwoClaimsHaveTwoRequestIds) {
  Serve([](const SentCall& call) { return Grant(call, 1); });
  const Client client = Connect();
  ASSERT_TRUE(client.Claim("orders", kShard, 1).ok());
  ASSERT_TRUE(client.Claim("orders", kShard, 1).ok());
  const auto calls = server_->calls();
  EXPECT_NE(calls[0].As<v1::ClaimEpochRequest>().request_id(),
            calls[1].As<v1::ClaimEpochRequest>().request_id());
}

TEST_F(ClientCallsTest, ADroppedAnswerIsAskedForAgainWithTheSameBytes) {
  Serve([](const SentCall& call) { return call.number == 0 ? Reply::Hold() : Grant(call, 5); });
  ClientOptions options = OptionsFor(server_->target());
  options.retry.attempt_timeout = absl::Milliseconds(300);
  const auto claim = ConnectWith(options, &environment_).Claim("orders", kShard, 1);
  ASSERT_TRUE(claim.ok()) << claim.status();
  const auto calls = server_->calls();
  ASSERT_THAT(calls.size(), Ge(2U));
  for (const SentCall& call : calls) EXPECT_EQ(call.messages, calls[0].messages);
}

TEST_F(ClientCallsTest, AResetConnectionIsAskedAgainWithTheSameBytes) {
  TcpProxy* proxy_to_reset = nullptr;
  Serve([&proxy_to_reset](const SentCall& call) {
    if (call.number > 0) return Grant(call, 5);
    proxy_to_reset->ResetAll();
    return Reply::Hold();
  });
  TcpProxy proxy({.server_port = server_->port(), .bytes_before_reset = nullptr});
  proxy_to_reset = &proxy;
  // In real time, since the connection has to come back.
  const auto claim = Client::Connect(OptionsFor(proxy.target())).value().Claim("orders", kShard, 1);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->epoch(), 5U);
  const auto calls = server_->calls();
  ASSERT_THAT(calls.size(), Ge(2U));
  for (const SentCall& call : calls) EXPECT_EQ(call.messages, calls[0].messages);
}

TEST_F(ClientCallsTest, ACallerCanRepeatAnEarlierClaim) {
  Serve([](const SentCall& call) { return Grant(call, 1); });
  CallOptions options;
  options.request_id = "from-before";
  ASSERT_TRUE(Connect().Claim("orders", kShard, 1, ClaimOptions(), options).ok());
  EXPECT_EQ(server_->calls()[0].As<v1::ClaimEpochRequest>().request_id(), "from-before");
}

TEST_F(ClientCallsTest, TheServersDelayIsHonoured) {
  Serve([](const SentCall& call) {
    if (call.number > 0) return Grant(call, 1);
    absl::Status overloaded = Refusal(absl::StatusCode::kResourceExhausted, "OVERLOADED");
    AttachRetryDelay(absl::Seconds(3), &overloaded);
    return Reply::Refuse(overloaded);
  });
  ASSERT_TRUE(Connect().Claim("orders", kShard, 1).ok());
  EXPECT_THAT(environment_.sleeps(), ElementsAre(Ge(absl::Seconds(3))));
}

TEST_F(ClientCallsTest, TheCallersTimeoutReplacesTheBudget) {
  Serve([](const SentCall&) {
    absl::Status overloaded = Refusal(absl::StatusCode::kResourceExhausted, "OVERLOADED");
    AttachRetryDelay(absl::Seconds(25), &overloaded);
    return Reply::Refuse(overloaded);
  });
  CallOptions options;
  options.timeout = absl::Seconds(20);
  const auto claim = Connect().Claim("orders", kShard, 1, ClaimOptions(), options);
  EXPECT_THAT(server_->calls(), SizeIs(1)) << "the default budget would have allowed another one";
  EXPECT_EQ(ErrorDetails::From(claim.status()).reason, ErrorReason::kOverloaded);
  EXPECT_THAT(std::string(claim.status().message()), HasSubstr("gave up after 1 attempts"));
}

struct ReasonCase {
  absl::StatusCode code;
  const char* reason;
  friend void PrintTo(const ReasonCase& c, std::ostream* out) { *out << c.reason; }
};
std::string NameOf(const ::testing::TestParamInfo<ReasonCase>& info) { return info.param.reason; }

class RetriedTest : public ClientCallsTest, public ::testing::WithParamInterface<ReasonCase> {};

TEST_P(RetriedTest, UntilItSucceedsWithTheSameBytes) {
  Serve([](const SentCall& call) {
    return call.number < 2 ? Reply::Refuse(Refusal(GetParam().code, GetParam().reason))
                           : Grant(call, 9);
  });
  const auto claim = Connect().Claim("orders", kShard, 1);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->epoch(), 9U);
  const auto calls = server_->calls();
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_EQ(calls[1].messages, calls[0].messages);
  EXPECT_EQ(calls[2].messages, calls[0].messages);
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, RetriedTest,
    ::testing::Values(ReasonCase{absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE"},
                      ReasonCase{absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN"},
                      ReasonCase{absl::StatusCode::kUnavailable, "DRAINING"},
                      ReasonCase{absl::StatusCode::kUnavailable, "SOMETHING_NEW"},
                      ReasonCase{absl::StatusCode::kDeadlineExceeded, "SOMETHING_SLOW"},
                      ReasonCase{absl::StatusCode::kResourceExhausted, "OVERLOADED"},
                      ReasonCase{absl::StatusCode::kResourceExhausted, "CLAIM_TOO_SOON"}),
    NameOf);

class NotRetriedTest : public ClientCallsTest, public ::testing::WithParamInterface<ReasonCase> {};

TEST_P(NotRetriedTest, AsksOnceAndSaysWhy) {
  Serve([](const SentCall&) {
    return Reply::Refuse(Refusal(GetParam().code, GetParam().reason, {{"claimant", "other"}}));
  });
  const auto claim = Connect().Claim("orders", kShard, 1);
  EXPECT_THAT(server_->calls(), SizeIs(1));
  EXPECT_EQ(claim.status().code(), GetParam().code);
  const auto details = ErrorDetails::From(claim.status());
  EXPECT_EQ(details.reason_text, GetParam().reason);
  EXPECT_NE(details.reason, ErrorReason::kUnknown);
  EXPECT_EQ(details.claimant, "other");
  EXPECT_EQ(details.attempts, 1);
  EXPECT_FALSE(details.may_have_landed);
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, NotRetriedTest,
    ::testing::Values(ReasonCase{absl::StatusCode::kInvalidArgument, "SHARD_SPEC_MISMATCH"},
                      ReasonCase{absl::StatusCode::kInvalidArgument,
                                 "SHARD_SPEC_FINGERPRINT_MISMATCH"},
                      ReasonCase{absl::StatusCode::kInvalidArgument, "EPOCH_FROM_FUTURE"},
                      ReasonCase{absl::StatusCode::kInvalidArgument, "INVALID_MANIFEST"},
                      ReasonCase{absl::StatusCode::kInvalidArgument, "INVALID_REQUEST"},
                      ReasonCase{absl::StatusCode::kInvalidArgument, "UNKNOWN_SHARDING_SPEC"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "SHARD_SEALED"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "TABLE_SEALED"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "SPEC_RETIRED"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "SPEC_NOT_ACTIVE"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "SHARD_NOT_SEALED"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "WRITER_FENCED"},
                      ReasonCase{absl::StatusCode::kFailedPrecondition, "SHARD_HELD"},
                      ReasonCase{absl::StatusCode::kAborted, "CLAIM_LOST_RACE"},
                      ReasonCase{absl::StatusCode::kAborted, "CLAIM_SUPERSEDED"},
                      ReasonCase{absl::StatusCode::kAborted, "MANIFEST_VERSION_CONFLICT"},
                      ReasonCase{absl::StatusCode::kAborted, "MANIFEST_CONTENTION"},
                      ReasonCase{absl::StatusCode::kAborted, "EPOCH_MISMATCH"},
                      ReasonCase{absl::StatusCode::kAlreadyExists, "SHARD_IDENTITY_CONFLICT"},
                      ReasonCase{absl::StatusCode::kAlreadyExists, "TABLE_EXISTS"},
                      ReasonCase{absl::StatusCode::kNotFound, "SHARD_NOT_FOUND"},
                      ReasonCase{absl::StatusCode::kNotFound, "TABLE_NOT_FOUND"},
                      ReasonCase{absl::StatusCode::kNotFound, "VERSION_NOT_FOUND"},
                      ReasonCase{absl::StatusCode::kDataLoss, "STORE_CORRUPT"},
                      ReasonCase{absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED"},
                      ReasonCase{absl::StatusCode::kUnauthenticated, "UNAUTHENTICATED"}),
    NameOf);

// Seal, unseal, drop and release, after one lost answer.
TEST_F(ClientCallsTest, EveryMutationKeepsItsRequestId) {
  Serve([](const SentCall& call) {
    if (call.number == 0) {
      return Reply::Refuse(Refusal(absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN"));
    }
    v1::SealShardResponse response;  // All of them answer one manifest as field 1.
    response.mutable_manifest()->set_version(3);
    return Reply::Answer(response);
  });
  const Client client = Connect();
  EXPECT_EQ(client.Seal("orders", kShard).value().version, 3U);
  EXPECT_EQ(client.Unseal("orders", kShard).value().version, 3U);
  EXPECT_EQ(client.Drop("orders", kShard, 7).value().version, 3U);
  EXPECT_EQ(client.Release("orders", kShard, 7).value().version, 3U);
  for (const char* method : {"SealShard", "UnsealShard", "DropShard", "ReleaseEpoch"}) {
    const auto calls = server_->calls(method);
    ASSERT_THAT(calls, SizeIs(2)) << method;
    EXPECT_EQ(calls[0].messages, calls[1].messages) << method;
  }
  EXPECT_FALSE(server_->calls("SealShard")[0].As<v1::SealShardRequest>().request_id().empty());
  EXPECT_FALSE(server_->calls("UnsealShard")[0].As<v1::UnsealShardRequest>().request_id().empty());
  const auto drop = server_->calls("DropShard")[0].As<v1::DropShardRequest>();
  EXPECT_FALSE(drop.request_id().empty());
  EXPECT_EQ(drop.expected_epoch(), 7U);
  const auto release = server_->calls("ReleaseEpoch")[0].As<v1::ReleaseEpochRequest>();
  EXPECT_FALSE(release.request_id().empty());
  EXPECT_EQ(release.writer_epoch(), 7U);
}

TEST_F(ClientCallsTest, ReadsAndInitializeSendWhatWasAsked) {
  Serve([](const SentCall& call) {
    if (call.method == "CheckFence") {
      v1::CheckFenceResponse response;
      response.set_version(6);
      response.mutable_claim()->set_claimant("a");
      return Reply::Answer(response);
    }
    v1::GetManifestResponse response;
    response.mutable_manifest()->set_version(6);
    return Reply::Answer(response);
  });
  const Client client = Connect();
  ASSERT_TRUE(client.Get("orders", kShard, 4).ok());
  ASSERT_TRUE(client.Get("orders", kShard).ok());
  ASSERT_TRUE(client.Initialize("orders", kShard, 2, {{{"f", "v"}}, "print"}).ok());
  const auto fence = client.CheckFence("orders", kShard, 8);
  ASSERT_TRUE(fence.ok());
  EXPECT_EQ(fence->version, 6U);
  EXPECT_EQ(fence->claim->claimant, "a");
  EXPECT_EQ(server_->calls("GetManifest")[0].As<v1::GetManifestRequest>().version(), 4U);
  EXPECT_FALSE(server_->calls("GetManifest")[1].As<v1::GetManifestRequest>().has_version());
  EXPECT_EQ(server_->calls("CheckFence")[0].As<v1::CheckFenceRequest>().writer_epoch(), 8U);
  const auto init = server_->calls("InitializeShard")[0].As<v1::InitializeShardRequest>();
  EXPECT_EQ(init.shard_spec_id(), 2U);
  EXPECT_EQ(init.shard_field_values().at("f"), "v");
  EXPECT_EQ(init.shard_spec_fingerprint(), "print");
}

TEST_F(ClientCallsTest, ListingsPageWithTheirFilters) {
  Serve([](const SentCall& call) {
    const auto request = call.As<v1::ListShardsRequest>();
    v1::ListShardsResponse response;
    response.add_shards()->set_version(static_cast<uint64_t>(call.number) + 1);
    if (call.number < 2) response.set_next_page_token("page-" + std::to_string(call.number + 1));
    return Reply::Answer(response);
  });
  ListOptions list;
  list.status = ShardStatus::kSealed;
  list.claimant = "a";
  list.shard_spec_id = 0;
  list.view = ShardView::kFull;
  list.page_size = 17;
  const auto shards = Connect().List("orders", list).ToVector();
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_THAT(*shards, SizeIs(3));
  const auto calls = server_->calls("ListShards");
  ASSERT_THAT(calls, SizeIs(3));
  for (const SentCall& call : calls) {
    const auto request = call.As<v1::ListShardsRequest>();
    EXPECT_EQ(request.table(), "orders");
    EXPECT_EQ(request.status(), v1::SHARD_STATUS_SEALED);
    EXPECT_EQ(request.claimant(), "a");
    EXPECT_TRUE(request.has_shard_spec_id());
    EXPECT_EQ(request.view(), v1::SHARD_VIEW_FULL);
    EXPECT_EQ(request.page_size(), 17);
    EXPECT_EQ(request.page_token(), call.number == 0 ? "" : "page-" + std::to_string(call.number));
  }
}

TEST_F(ClientCallsTest, VersionsAndClaimsAreListed) {
  Serve([](const SentCall& call) {
    if (call.method == "ListClaims") {
      v1::ListClaimsResponse response;
      response.add_claims()->set_note("why");
      return Reply::Answer(response);
    }
    v1::ListManifestVersionsResponse response;
    response.add_manifests()->set_version(2);
    response.add_manifests()->set_version(1);
    return Reply::Answer(response);
  });
  const Client client = Connect();
  EXPECT_THAT(client.Versions("orders", kShard, ShardView::kFull).ToVector().value(), SizeIs(2));
  EXPECT_EQ(client.Claims("orders", kShard).ToVector().value().at(0).note, "why");
}

TEST_F(ClientCallsTest, AttachJoinsTheStoredEpochWithoutClaiming) {
  Serve([](const SentCall& call) {
    if (call.method == "CheckFence") {
      return Reply::Refuse(Refusal(absl::StatusCode::kFailedPrecondition, "WRITER_FENCED"));
    }
    v1::GetManifestResponse response;
    response.mutable_manifest()->set_writer_epoch(6);
    return Reply::Answer(response);
  });
  const Client client = Connect();
  EXPECT_EQ(client.Attach("orders", kShard, std::nullopt).value().epoch(), 6U);
  EXPECT_EQ(client.Attach("orders", kShard, 6).value().epoch(), 6U);
  EXPECT_EQ(ErrorDetails::From(client.Attach("orders", kShard, 5).status()).reason,
            ErrorReason::kWriterFenced);
  EXPECT_THAT(server_->calls("ClaimEpoch"), SizeIs(0));
}

TEST_F(ClientCallsTest, ImportSendsAThousandManifestsACallAndKeepsTheOrder) {
  Serve([](const SentCall& call) {
    v1::ImportManifestsResponse response;
    for (size_t i = 0; i < call.messages.size(); ++i) {
      response.add_results()->set_code(call.number == 1 && i == 0 ? 6 : 0);
    }
    return Reply::Answer(response);
  });
  std::vector<ShardManifest> manifests(1'500);
  for (size_t i = 0; i < manifests.size(); ++i) manifests[i].version = i + 1;
  const auto results = Connect().Import(manifests);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_THAT(*results, SizeIs(1'500));
  EXPECT_TRUE(absl::IsAlreadyExists((*results)[1'000]));
  EXPECT_TRUE((*results)[999].ok());
  const auto calls = server_->calls("ImportManifests");
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_THAT(calls[0].messages, SizeIs(1'000));
  EXPECT_EQ(calls[1].As<v1::ImportManifestsRequest>().manifest().version(), 1'001U);
}

TEST_F(ClientCallsTest, ServerInfoAndHealthAreAnswered) {
  Serve([](const SentCall& call) {
    if (call.method == "Check") {
      grpc::health::v1::HealthCheckResponse response;
      response.set_status(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
      return call.number == 0 ? Reply::Answer(response)
                              : Reply::Refuse(absl::NotFoundError("unknown service"));
    }
    v1::GetServerInfoResponse response;
    response.set_store_kind("memory");
    return Reply::Answer(response);
  });
  const Client client = Connect();
  EXPECT_EQ(client.GetServerInfo().value().store_kind, "memory");
  EXPECT_EQ(client.CheckHealth().value(), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("no.such.Service").value(), Health::kServiceUnknown);
}

}  // namespace
}  // namespace claimd
