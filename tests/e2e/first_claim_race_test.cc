#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.grpc.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"

// 64 clients on connections of their own claim one fresh shard under two spec ids, all at once.
namespace claimd::e2e {
namespace {

using ::testing::AnyOf;

constexpr int kClients = 64;
constexpr int kRounds = 200;

class FirstClaimRaceTest : public SharedServerTest {
 protected:
  struct Try {
    grpc::ClientContext context;
    v1::ClaimEpochRequest request;
    v1::ClaimEpochResponse response;
    grpc::Status status;
  };
  using Tries = std::vector<std::unique_ptr<Try>>;

  void SetUp() override {
    SharedServerTest::SetUp();
    for (int i = 0; i < kClients; ++i) {
      channels_.push_back(NewChannel(server().address()));
      channels_.back()->GetState(/*try_to_connect=*/true);
      stubs_.push_back(v1::ShardArbiter::NewStub(channels_.back()));
    }
    for (const auto& channel : channels_) {
      ASSERT_TRUE(
          channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(60)));
    }
  }

  // One round: every client claims 'shard' once; half of them under spec 0, half under spec 1.
  Tries Race(const Shard& shard, std::optional<uint64_t> expected_epoch) {
    Tries tries;
    absl::BlockingCounter open(kClients);
    for (int i = 0; i < kClients; ++i) {
      auto one = std::make_unique<Try>();
      one->request = ClaimOf(shard, absl::StrCat("client-", i), static_cast<uint32_t>(i % 2));
      one->request.set_request_id(RandomUuid());
      if (expected_epoch.has_value()) one->request.set_expected_epoch(*expected_epoch);
      tries.push_back(std::move(one));
    }
    for (int i = 0; i < kClients; ++i) {
      Try* one = tries[i].get();
      stubs_[i]->async()->ClaimEpoch(&one->context, &one->request, &one->response,
                                     [one, &open](grpc::Status status) {
                                       one->status = std::move(status);
                                       open.DecrementCount();
                                     });
    }
    open.Wait();
    return tries;
  }

  // Checks what holds for any round, and answers the epochs granted, sorted.
  static std::vector<uint64_t> GrantedEpochs(const Shard& shard, const Tries& tries,
                                             const std::set<std::string>& refusals) {
    std::vector<uint64_t> epochs;
    std::set<uint32_t> identities;
    int makers = 0;
    for (const auto& one : tries) {
      if (!one->status.ok()) {
        EXPECT_EQ(refusals.count(Reason(one->status)), 1U) << Describe(one->status);
        continue;
      }
      epochs.push_back(one->response.writer_epoch());
      identities.insert(one->response.manifest().shard_spec_id());
      EXPECT_EQ(one->request.shard_spec_id(), one->response.manifest().shard_spec_id());
      if (one->response.created()) ++makers;
    }
    EXPECT_EQ(identities.size(), 1U) << "one identity is ever granted";
    EXPECT_EQ(makers, 1) << "one claim made the shard";
    std::sort(epochs.begin(), epochs.end());

    const auto head = client().Get(shard).response.manifest();
    EXPECT_EQ(head.writer_epoch(), epochs.size());
    EXPECT_EQ(head.version(), epochs.size()) << "each grant is one version, a refusal is none";
    return epochs;
  }

 private:
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::ShardArbiter::Stub>> stubs_;
};

TEST_F(FirstClaimRaceTest, EpochsAreDenseUnderOneIdentity) {
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const Shard shard = FreshShard();
    const Tries tries = Race(shard, std::nullopt);
    const std::vector<uint64_t> epochs =
        GrantedEpochs(shard, tries, {"CLAIM_LOST_RACE", "SHARD_SPEC_MISMATCH"});
    std::vector<uint64_t> dense(epochs.size());
    std::iota(dense.begin(), dense.end(), 1);
    EXPECT_EQ(epochs, dense) << "round " << round;
    EXPECT_GE(epochs.size(), 1U);
  }
}

TEST_F(FirstClaimRaceTest, ExpectedEpochZeroHasExactlyOneWinner) {
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const Shard shard = FreshShard();
    const Tries tries = Race(shard, 0);
    const std::vector<uint64_t> epochs =
        GrantedEpochs(shard, tries, {"CLAIM_LOST_RACE", "EPOCH_MISMATCH", "SHARD_SPEC_MISMATCH"});
    EXPECT_THAT(epochs, ::testing::ElementsAre(1U)) << "round " << round;
  }
}

TEST_F(FirstClaimRaceTest, RacesOnAHeldShardGrantDenseEpochsToo) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "holder", 1).status));
  std::vector<uint64_t> all = {1};
  constexpr int kFewRounds = 20;
  for (int round = 0; round < kFewRounds; ++round) {
    for (const auto& one : Race(shard, std::nullopt)) {
      if (one->status.ok()) {
        all.push_back(one->response.writer_epoch());
      } else {
        EXPECT_THAT(Reason(one->status), AnyOf("CLAIM_LOST_RACE", "SHARD_SPEC_MISMATCH"));
      }
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<uint64_t> dense(all.size());
  std::iota(dense.begin(), dense.end(), 1);
  EXPECT_EQ(all, dense);
}

}  // namespace
}  // namespace claimd::e2e
