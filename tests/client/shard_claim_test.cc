#include "claimd/shard_claim.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/client.h"
#include "tests/client/fake_environment.h"
#include "tests/client/scripted_server.h"

namespace claimd {
namespace {

using ::claimd::testing::Attach;
using ::claimd::testing::ConnectWith;
using ::claimd::testing::FakeEnvironment;
using ::claimd::testing::Refusal;
using ::claimd::testing::Reply;
using ::claimd::testing::ScriptedServer;
using ::claimd::testing::SentCall;
using ::testing::Ge;
using ::testing::SizeIs;

constexpr char kShard[] = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
constexpr uint64_t kEpoch = 4;

v1::ShardManifest StoredManifest(uint64_t version) {
  v1::ShardManifest manifest;
  manifest.set_table("orders");
  manifest.set_shard_id(kShard);
  manifest.set_version(version);
  manifest.set_writer_epoch(kEpoch);
  manifest.set_current_generation(1);
  manifest.set_status(v1::SHARD_STATUS_ACTIVE);
  manifest.mutable_claim()->set_writer_epoch(kEpoch);
  manifest.set_replay_after_wal_entry_position(10);
  manifest.set_wal_entry_position_last_seen(12);
  return manifest;
}

absl::Status Fenced() {
  return Refusal(absl::StatusCode::kFailedPrecondition, "WRITER_FENCED",
                 {{"writer_epoch", "4"}, {"stored_writer_epoch", "5"}, {"claimant", "successor"}});
}
absl::Status Conflict() { return Refusal(absl::StatusCode::kAborted, "MANIFEST_VERSION_CONFLICT"); }

Reply Manifest(const v1::ShardManifest& manifest) {
  v1::GetManifestResponse response;  // Every answer with a manifest has it as field 1.
  *response.mutable_manifest() = manifest;
  return Reply::Answer(response);
}
// Takes a commit as it is.
Reply Accept(const SentCall& call) {
  return Manifest(call.As<v1::CommitManifestRequest>().manifest());
}

absl::Status Annotate(ShardManifest* manifest) {
  manifest->annotations["key"] += "x";
  return absl::OkStatus();
}

class ShardClaimTest : public ::testing::Test {
 protected:
  // Claims are granted; 'script' decides about all else.
  void Serve(ScriptedServer::Script script) {
    server_ = std::make_unique<ScriptedServer>([script](const SentCall& call) {
      if (call.method != "ClaimEpoch") return script(call);
      v1::ClaimEpochResponse response;
      response.set_writer_epoch(kEpoch);
      response.set_created(true);
      *response.mutable_manifest() = StoredManifest(7);
      response.mutable_previous_claim()->set_claimant("predecessor");
      return Reply::Answer(response);
    });
  }
  ShardClaim Claim(std::function<void(const absl::Status&)> on_fenced = nullptr) {
    ClientOptions options;
    options.targets = {server_->target()};
    options.retry.attempt_timeout = absl::Seconds(20);
    ClaimOptions claim_options;
    claim_options.on_fenced = std::move(on_fenced);
    return ConnectWith(options, &environment_).Claim("orders", kShard, 1, claim_options).value();
  }
  std::vector<SentCall> commits() const { return server_->calls("CommitManifest"); }

  FakeEnvironment environment_;
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(ShardClaimTest, KnowsWhatWasGranted) {
  Serve(Accept);
  const ShardClaim claim = Claim();
  EXPECT_EQ(claim.table(), "orders");
  EXPECT_EQ(claim.shard_id(), kShard);
  EXPECT_EQ(claim.epoch(), kEpoch);
  EXPECT_EQ(claim.manifest().version, 7U);
  EXPECT_TRUE(claim.created());
  EXPECT_EQ(claim.previous_claim()->claimant, "predecessor");
  EXPECT_EQ(claim.wal_probe_position(), 13U);
  EXPECT_FALSE(claim.fenced());
}

TEST_F(ShardClaimTest, CommitSendsTheChangedManifestAsTheNextVersion) {
  Serve(Accept);
  ShardClaim claim = Claim();
  const auto committed = claim.Commit([](ShardManifest* manifest) {
    manifest->sstables.push_back({1, "one", {}, {}, {}, ""});
    manifest->current_generation = 2;
    manifest->version = 99;  // Not the mutator's to choose.
    return absl::OkStatus();
  });
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->version, 8U);
  EXPECT_EQ(claim.manifest(), *committed);
  ASSERT_THAT(commits(), SizeIs(1));
  const auto request = commits()[0].As<v1::CommitManifestRequest>();
  EXPECT_EQ(request.writer_epoch(), kEpoch);
  EXPECT_EQ(request.manifest().version(), 8U);
  EXPECT_EQ(request.manifest().sstables(0).path(), "one");
  EXPECT_EQ(request.manifest().wal_entry_position_last_seen(), 12U);
  EXPECT_FALSE(request.request_id().empty());
}

TEST_F(ShardClaimTest, AConflictWithTheManifestAttachedNeedsNoRead) {
  Serve([](const SentCall& call) {
    if (call.number > 0) return Accept(call);
    v1::ShardManifest stored = StoredManifest(20);
    (*stored.mutable_annotations())["key"] = "theirs-";
    absl::Status conflict = Conflict();
    Attach("claimd.v1.ShardManifest", stored, &conflict);
    return Reply::Refuse(conflict);
  });
  ShardClaim claim = Claim();
  const auto committed = claim.Commit(Annotate);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->version, 21U);
  EXPECT_EQ(committed->annotations.at("key"), "theirs-x");
  EXPECT_THAT(server_->calls("GetManifest"), SizeIs(0));
  ASSERT_THAT(commits(), SizeIs(2));
  EXPECT_NE(commits()[0].As<v1::CommitManifestRequest>().request_id(),
            commits()[1].As<v1::CommitManifestRequest>().request_id());
}

TEST_F(ShardClaimTest, AConflictWithoutManifestReadsIt) {
  Serve([](const SentCall& call) {
    if (call.method == "GetManifest") return Manifest(StoredManifest(30));
    return call.number > 0 ? Accept(call) : Reply::Refuse(Conflict());
  });
  ShardClaim claim = Claim();
  EXPECT_EQ(claim.Commit(Annotate).value().version, 31U);
  EXPECT_THAT(server_->calls("GetManifest"), SizeIs(1));
}

TEST_F(ShardClaimTest, AnUnknownOutcomeIsRepeatedWithTheSameIdAndBytes) {
  Serve([](const SentCall& call) {
    return call.number > 1
               ? Accept(call)
               : Reply::Refuse(Refusal(absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN"));
  });
  ShardClaim claim = Claim();
  int applied = 0;
  ASSERT_TRUE(claim
                  .Commit([&applied](ShardManifest* manifest) {
                    ++applied;
                    return Annotate(manifest);
                  })
                  .ok());
  EXPECT_EQ(applied, 1);
  ASSERT_THAT(commits(), SizeIs(3));
  EXPECT_EQ(commits()[1].messages, commits()[0].messages);
  EXPECT_EQ(commits()[2].messages, commits()[0].messages);
}

TEST_F(ShardClaimTest, AConflictAfterALostAnswerIsOnlyBelievedWhileTheHistoryReachesBack) {
  Serve([](const SentCall& call) {
    if (call.method == "GetManifest") {
      return call.As<v1::GetManifestRequest>().has_version()
                 ? Reply::Refuse(Refusal(absl::StatusCode::kNotFound, "VERSION_NOT_FOUND"))
                 : Manifest(StoredManifest(500));
    }
    return call.number == 0
               ? Reply::Refuse(Refusal(absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN"))
               : Reply::Refuse(Conflict());
  });
  ShardClaim claim = Claim();
  const auto details = ErrorDetails::From(claim.Commit(Annotate).status());
  EXPECT_EQ(details.reason, ErrorReason::kOutcomeUnknown);
  EXPECT_TRUE(details.may_have_landed);
  EXPECT_THAT(commits(), SizeIs(2));
}

TEST_F(ShardClaimTest, AConflictAfterALostAnswerIsRebasedWhenTheVersionIsKept) {
  Serve([](const SentCall& call) {
    if (call.method == "GetManifest") {
      const auto request = call.As<v1::GetManifestRequest>();
      return Manifest(StoredManifest(request.has_version() ? request.version() : 9));
    }
    if (call.number == 0) {
      return Reply::Refuse(Refusal(absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN"));
    }
    return call.number == 1 ? Reply::Refuse(Conflict()) : Accept(call);
  });
  ShardClaim claim = Claim();
  EXPECT_EQ(claim.Commit(Annotate).value().version, 10U);
  EXPECT_EQ(server_->calls("GetManifest")[0].As<v1::GetManifestRequest>().version(), 8U);
}

TEST_F(ShardClaimTest, ConflictsWithoutEndStopWithTheBudget) {
  Serve([](const SentCall& call) {
    return call.method == "GetManifest"
               ? Manifest(StoredManifest(static_cast<uint64_t>(call.number) + 8))
               : Reply::Refuse(Conflict());
  });
  ShardClaim claim = Claim();
  EXPECT_EQ(ErrorDetails::From(claim.Commit(Annotate).status()).reason,
            ErrorReason::kManifestVersionConflict);
  EXPECT_THAT(commits().size(), Ge(3U));
  EXPECT_FALSE(claim.fenced());
}

TEST_F(ShardClaimTest, AServerWhoseDataWentBackIsNotCommittedTo) {
  Serve([](const SentCall& call) {
    return call.method == "GetManifest" ? Manifest(StoredManifest(3)) : Reply::Refuse(Conflict());
  });
  ShardClaim claim = Claim();
  EXPECT_TRUE(absl::IsDataLoss(claim.Commit(Annotate).status()));
  EXPECT_THAT(commits(), SizeIs(1));
}

TEST_F(ShardClaimTest, AFenceEndsTheClaimWithoutFurtherCalls) {
  Serve([](const SentCall&) { return Reply::Refuse(Fenced()); });
  int told = 0;
  ShardClaim claim = Claim([&told](const absl::Status&) { ++told; });
  const auto first = ErrorDetails::From(claim.Commit(Annotate).status());
  EXPECT_EQ(first.reason, ErrorReason::kWriterFenced);
  EXPECT_EQ(first.attempts, 1);
  EXPECT_TRUE(claim.fenced());
  const size_t calls = server_->calls().size();
  for (const absl::Status& later :
       {claim.Commit(Annotate).status(), claim.CheckFence(), claim.Release()}) {
    const auto details = ErrorDetails::From(later);
    EXPECT_EQ(details.reason, ErrorReason::kWriterFenced);
    EXPECT_EQ(details.stored_writer_epoch, 5U);
    EXPECT_EQ(details.claimant, "successor");
    EXPECT_EQ(details.attempts, 0);
  }
  EXPECT_THAT(server_->calls(), SizeIs(calls));
  EXPECT_EQ(told, 1);
  EXPECT_THAT(server_->calls("ClaimEpoch"), SizeIs(1));
}

TEST_F(ShardClaimTest, CheckFenceAndReleaseLearnOfTheFenceToo) {
  Serve([](const SentCall&) { return Reply::Refuse(Fenced()); });
  ShardClaim checked = Claim();
  EXPECT_FALSE(checked.CheckFence().ok());
  EXPECT_TRUE(checked.fenced());
  ShardClaim released = Claim();
  EXPECT_FALSE(released.Release().ok());
  EXPECT_TRUE(released.fenced());
}

TEST_F(ShardClaimTest, ATransportErrorIsNoFence) {
  Serve([](const SentCall&) {
    return Reply::Refuse(Refusal(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE"));
  });
  ShardClaim claim = Claim();
  EXPECT_TRUE(absl::IsUnavailable(claim.CheckFence()));
  EXPECT_FALSE(claim.fenced());
}

TEST_F(ShardClaimTest, OnFencedMayDestroyTheClaim) {
  Serve([](const SentCall&) { return Reply::Refuse(Fenced()); });
  std::unique_ptr<ShardClaim> claim;
  claim = std::make_unique<ShardClaim>(Claim([&claim](const absl::Status&) { claim.reset(); }));
  EXPECT_FALSE(claim->Commit(Annotate).ok());
  EXPECT_EQ(claim, nullptr);
}

TEST_F(ShardClaimTest, OnFencedMayUseTheClaim) {
  Serve([](const SentCall&) { return Reply::Refuse(Fenced()); });
  ShardClaim* used = nullptr;
  absl::Status released;
  ShardClaim claim = Claim([&](const absl::Status&) { released = used->Release(); });
  used = &claim;
  EXPECT_FALSE(claim.Commit(Annotate).ok());
  EXPECT_EQ(ErrorDetails::From(released).reason, ErrorReason::kWriterFenced);
}

TEST_F(ShardClaimTest, AMutatorsErrorEndsTheCommitUnsent) {
  Serve(Accept);
  ShardClaim claim = Claim();
  EXPECT_TRUE(absl::IsCancelled(
      claim.Commit([](ShardManifest*) { return absl::CancelledError("not now"); }).status()));
  EXPECT_THAT(commits(), SizeIs(0));
  EXPECT_TRUE(claim.Commit(Annotate).ok());
}

TEST_F(ShardClaimTest, AMutatorThatCommitsIsRefused) {
  Serve(Accept);
  ShardClaim claim = Claim();
  absl::Status inner;
  EXPECT_TRUE(claim
                  .Commit([&](ShardManifest*) {
                    inner = claim.Commit(Annotate).status();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(inner)) << inner;
  EXPECT_THAT(commits(), SizeIs(1));
}

TEST_F(ShardClaimTest, CommitsFromManyThreadsTakeTurnsAndDoNotConflict) {
  constexpr int kThreads = 8;
  constexpr int kCommits = 10;
  Serve([](const SentCall& call) {
    if (call.method == "CheckFence") return Reply::Answer(v1::CheckFenceResponse());
    // The n-th commit is the one after version 7 + n, or else two of them started from the same.
    const uint64_t version = call.As<v1::CommitManifestRequest>().manifest().version();
    return version == static_cast<uint64_t>(call.number) + 8 ? Accept(call)
                                                             : Reply::Refuse(Fenced());
  });
  ShardClaim claim = Claim();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&claim] {
      for (int i = 0; i < kCommits; ++i) {
        const uint64_t before = claim.manifest().version;
        const auto committed = claim.Commit(Annotate);
        ASSERT_TRUE(committed.ok()) << committed.status();
        EXPECT_GT(committed->version, before);
        EXPECT_TRUE(claim.CheckFence().ok());
        EXPECT_FALSE(claim.fenced());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claim.manifest().version, 7U + kThreads * kCommits);
  EXPECT_EQ(claim.manifest().annotations.at("key"), std::string(kThreads * kCommits, 'x'));
}

TEST_F(ShardClaimTest, OfManyThreadsThatMeetAFenceOneTellsTheCaller) {
  Serve([](const SentCall&) { return Reply::Refuse(Fenced()); });
  std::atomic<int> told = 0;
  ShardClaim claim = Claim([&told](const absl::Status&) { ++told; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&claim, t] {
      const absl::Status status = t % 2 == 0 ? claim.CheckFence() : claim.Commit(Annotate).status();
      EXPECT_EQ(ErrorDetails::From(status).reason, ErrorReason::kWriterFenced);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 1);
}

TEST_F(ShardClaimTest, AReleasedClaimIsNotUsedAgain) {
  Serve([](const SentCall&) { return Manifest(StoredManifest(8)); });
  ShardClaim claim = Claim();
  EXPECT_TRUE(claim.Release().ok());
  const size_t calls = server_->calls().size();
  EXPECT_TRUE(claim.Release().ok());
  EXPECT_EQ(ErrorDetails::From(claim.CheckFence()).reason, ErrorReason::kClaimReleased);
  EXPECT_EQ(ErrorDetails::From(claim.Commit(Annotate).status()).reason,
            ErrorReason::kClaimReleased);
  EXPECT_THAT(server_->calls(), SizeIs(calls));
  EXPECT_FALSE(claim.fenced());
}

TEST_F(ShardClaimTest, DestructionSendsNothingAndWaitsForNothing) {
  Serve([](const SentCall&) { return Reply::Hold(); });
  { const ShardClaim claim = Claim(); }
  EXPECT_THAT(server_->calls(), SizeIs(1));
}

TEST_F(ShardClaimTest, AClaimOutlivesItsClientAndMoves) {
  Serve(Accept);
  ShardClaim claim = Claim();
  ShardClaim moved = std::move(claim);
  claim = std::move(moved);
  EXPECT_TRUE(claim.Commit(Annotate).ok());
}

}  // namespace
}  // namespace claimd
