#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/client.h"
#include "tests/client/fake_environment.h"
#include "tests/client/scripted_server.h"

namespace claimd {
namespace {

using ::claimd::testing::ConnectWith;
using ::claimd::testing::FakeEnvironment;
using ::claimd::testing::Refusal;
using ::claimd::testing::Reply;
using ::claimd::testing::ScriptedServer;
using ::claimd::testing::SentCall;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<ClaimTarget> Targets(size_t count) {
  std::vector<ClaimTarget> targets(count);
  for (size_t i = 0; i < count; ++i) {
    targets[i].table = "orders";
    targets[i].shard_id = absl::StrCat("shard-", i);
  }
  return targets;
}

void Grant(const v1::ClaimEpochRequest& request, uint64_t epoch, v1::ClaimEpochResponse* response) {
  response->set_writer_epoch(epoch);
  response->mutable_manifest()->set_table(request.table());
  response->mutable_manifest()->set_shard_id(request.shard_id());
  response->mutable_manifest()->set_version(1);
}

void Refuse(const std::string& reason, absl::StatusCode code, v1::BatchClaimEpochResult* result) {
  const absl::Status refusal = Refusal(code, reason);
  auto* status = result->mutable_status();
  status->set_code(static_cast<int>(code));
  status->set_message(std::string(refusal.message()));
  refusal.ForEachPayload([status](absl::string_view url, const absl::Cord& payload) {
    auto* detail = status->add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
}

std::vector<std::string> RequestIds(const SentCall& call) {
  std::vector<std::string> ids;
  const auto batch = call.As<v1::BatchClaimEpochRequest>();
  for (const auto& request : batch.requests()) {
    ids.push_back(request.request_id());
  }
  return ids;
}

class ClaimAllTest : public ::testing::Test {
 protected:
  // What to do with one claim of a batch; 'round' counts the calls.
  using Decide = std::function<void(const v1::ClaimEpochRequest& request, int round,
                                    v1::BatchClaimEpochResult* result)>;
  void Serve(const Decide& decide) {
    server_ = std::make_unique<ScriptedServer>([decide](const SentCall& call) {
      if (call.method == "ClaimEpoch") {
        v1::ClaimEpochResponse response;
        Grant(call.As<v1::ClaimEpochRequest>(), 77, &response);
        return Reply::Answer(response);
      }
      v1::BatchClaimEpochResponse response;
      const auto batch = call.As<v1::BatchClaimEpochRequest>();
      for (const auto& request : batch.requests()) {
        decide(request, call.number, response.add_results());
      }
      return Reply::Answer(response);
    });
  }
  Client Connect() {
    ClientOptions options;
    options.targets = {server_->target()};
    options.labels = labels_;
    options.retry.attempt_timeout = absl::Seconds(20);
    return ConnectWith(options, &environment_);
  }

  FakeEnvironment environment_;
  std::map<std::string, std::string> labels_;
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(ClaimAllTest, SendsUpTo1024ClaimsACallAndAnswersInOrder) {
  Serve([](const v1::ClaimEpochRequest& request, int, v1::BatchClaimEpochResult* result) {
    Grant(request, 1, result->mutable_response());
  });
  const auto claims = Connect().ClaimAll(Targets(2'500));
  ASSERT_THAT(claims, SizeIs(2'500));
  for (size_t i = 0; i < claims.size(); ++i) {
    ASSERT_TRUE(claims[i].ok()) << claims[i].status();
    EXPECT_EQ(claims[i]->shard_id(), absl::StrCat("shard-", i));
  }
  const auto calls = server_->calls();
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_THAT(RequestIds(calls[0]), SizeIs(1'024));
  EXPECT_THAT(RequestIds(calls[1]), SizeIs(1'024));
  EXPECT_THAT(RequestIds(calls[2]), SizeIs(452));
}

TEST_F(ClaimAllTest, ABatchStaysBelowTheServersMessageLimit) {
  for (int i = 0; i < 64; ++i) labels_[absl::StrCat("label-", i)] = std::string(1'000, 'x');
  Serve([](const v1::ClaimEpochRequest& request, int, v1::BatchClaimEpochResult* result) {
    Grant(request, 1, result->mutable_response());
  });
  for (const auto& claim : Connect().ClaimAll(Targets(200))) {
    ASSERT_TRUE(claim.ok()) << claim.status();
  }
  for (const SentCall& call : server_->calls()) EXPECT_LE(call.messages[0].size(), 4U << 20U);
}

TEST_F(ClaimAllTest, NothingToClaimSendsNothing) {
  Serve([](const v1::ClaimEpochRequest&, int, v1::BatchClaimEpochResult*) {});
  EXPECT_THAT(Connect().ClaimAll({}), SizeIs(0));
  EXPECT_THAT(server_->calls(), SizeIs(0));
}

TEST_F(ClaimAllTest, OneRefusedClaimLeavesTheOthersAndIsNotAskedAgain) {
  Serve([](const v1::ClaimEpochRequest& request, int, v1::BatchClaimEpochResult* result) {
    if (request.shard_id() == "shard-1") {
      Refuse("CLAIM_LOST_RACE", absl::StatusCode::kAborted, result);
    } else {
      Grant(request, 1, result->mutable_response());
    }
  });
  const auto claims = Connect().ClaimAll(Targets(3));
  EXPECT_TRUE(claims[0].ok());
  EXPECT_EQ(ErrorDetails::From(claims[1].status()).reason, ErrorReason::kClaimLostRace);
  EXPECT_TRUE(claims[2].ok());
  EXPECT_THAT(server_->calls(), SizeIs(1));
}

TEST_F(ClaimAllTest, OnlyWhatMayBeRetriedIsAskedAgainWithTheSameIds) {
  Serve([](const v1::ClaimEpochRequest& request, int round, v1::BatchClaimEpochResult* result) {
    if (round == 0 && request.shard_id() != "shard-0") {
      Refuse("OUTCOME_UNKNOWN", absl::StatusCode::kUnavailable, result);
    } else {
      Grant(request, static_cast<uint64_t>(round) + 1, result->mutable_response());
    }
  });
  const auto claims = Connect().ClaimAll(Targets(3));
  EXPECT_EQ(claims[0].value().epoch(), 1U);
  EXPECT_EQ(claims[1].value().epoch(), 2U);
  EXPECT_EQ(claims[2].value().epoch(), 2U);
  const auto calls = server_->calls();
  ASSERT_THAT(calls, SizeIs(2));
  const auto first = RequestIds(calls[0]);
  EXPECT_THAT(RequestIds(calls[1]), ElementsAre(first[1], first[2]));
}

TEST_F(ClaimAllTest, WhatStaysUnansweredSaysThatItMayHaveLanded) {
  Serve([](const v1::ClaimEpochRequest& request, int, v1::BatchClaimEpochResult* result) {
    if (request.shard_id() == "shard-0") {
      Grant(request, 1, result->mutable_response());
    } else {
      Refuse("OUTCOME_UNKNOWN", absl::StatusCode::kUnavailable, result);
    }
  });
  const auto claims = Connect().ClaimAll(Targets(2));
  EXPECT_TRUE(claims[0].ok());
  const auto details = ErrorDetails::From(claims[1].status());
  EXPECT_EQ(details.reason, ErrorReason::kOutcomeUnknown);
  EXPECT_TRUE(details.may_have_landed);
  EXPECT_EQ(details.request_id, RequestIds(server_->calls()[0])[1]);
}

TEST_F(ClaimAllTest, AnOmittedManifestIsFetchedByRepeatingTheClaim) {
  Serve([](const v1::ClaimEpochRequest& request, int, v1::BatchClaimEpochResult* result) {
    Grant(request, 77, result->mutable_response());
    if (request.shard_id() == "shard-1") {
      result->mutable_response()->clear_manifest();
      result->set_manifest_omitted(true);
    }
  });
  const auto claims = Connect().ClaimAll(Targets(2));
  ASSERT_TRUE(claims[1].ok()) << claims[1].status();
  EXPECT_EQ(claims[1]->epoch(), 77U);
  EXPECT_EQ(claims[1]->manifest().shard_id, "shard-1");
  const auto repeated = server_->calls("ClaimEpoch");
  ASSERT_THAT(repeated, SizeIs(1));
  EXPECT_EQ(repeated[0].As<v1::ClaimEpochRequest>().request_id(),
            RequestIds(server_->calls("BatchClaimEpoch")[0])[1]);
}

TEST_F(ClaimAllTest, AnAnswerOfAnotherLengthIsAnErrorForAll) {
  server_ = std::make_unique<ScriptedServer>([](const SentCall&) {
    v1::BatchClaimEpochResponse response;
    response.add_results();
    return Reply::Answer(response);
  });
  for (const auto& claim : Connect().ClaimAll(Targets(2))) {
    EXPECT_TRUE(absl::IsInternal(claim.status())) << claim.status();
    EXPECT_TRUE(ErrorDetails::From(claim.status()).may_have_landed);
  }
}

}  // namespace
}  // namespace claimd
