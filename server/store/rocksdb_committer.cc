#include "server/store/rocksdb_committer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <glog/logging.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_round.h"

namespace claimd::store {
namespace {

// Bounds of one round: what is waited for by all that are in it.
constexpr size_t kRoundSwapsMax = 1'024;
constexpr size_t kRoundBytesMax = size_t{8} << 20U;

using Verdict = RocksDbRound::Verdict;

absl::Status StoppedError(const absl::Status& why) { return absl::UnavailableError(why.message()); }

// What a verdict becomes when the batch is durable.
SwapOutcome Committed(Verdict verdict) {
  if (const auto* staged = std::get_if<RocksDbRound::Staged>(&verdict.outcome)) {
    return SwapCommitted{.revision = staged->revision};
  }
  if (auto* conflict = std::get_if<SwapConflict>(&verdict.outcome)) return std::move(*conflict);
  return std::get<SwapNotApplied>(std::move(verdict.outcome));
}

// What it becomes when it cannot be said whether the batch is.
SwapOutcome Failed(const Verdict& verdict, const absl::Status& why) {
  if (std::holds_alternative<RocksDbRound::Staged>(verdict.outcome)) {
    return SwapUnknown{.status = StoppedError(why)};
  }
  return SwapNotApplied{.status = StoppedError(why)};
}

}  // namespace

RocksDbCommitter::RocksDbCommitter(const RocksDatabase* database,
                                   const RocksDbRound::Limits& limits,
                                   RocksDbRound::Position position)
    : database_(database),
      limits_(limits),
      position_(position),
      revision_(position.revision),
      completions_(1),
      thread_([this] { Run(); }) {}

RocksDbCommitter::~RocksDbCommitter() {
  {
    const base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  submitted_.NotifyOne();
  thread_.join();
}

void RocksDbCommitter::Submit(PreparedSwap swap, Done done) {
  mutex_.Lock();
  if (stopping_) {
    mutex_.Unlock();
    done(SwapNotApplied{.status = absl::UnavailableError("the store is being closed")});
    return;
  }
  queue_.push_back({.swap = std::move(swap), .done = std::move(done)});
  mutex_.Unlock();
  submitted_.NotifyOne();
}

void RocksDbCommitter::Run() {
  while (true) {
    std::vector<Waiting> waiting = TakeRound();
    if (waiting.empty()) return;
    RunRound(std::move(waiting));
  }
}

std::vector<RocksDbCommitter::Waiting> RocksDbCommitter::TakeRound() {
  std::vector<Waiting> round;
  const base::MutexLock lock(&mutex_);
  while (queue_.empty() && !stopping_) submitted_.Wait(&mutex_);
  size_t bytes = 0;
  while (!queue_.empty() && round.size() < kRoundSwapsMax && bytes < kRoundBytesMax) {
    bytes += queue_.front().swap.head.size();
    round.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return round;
}

void RocksDbCommitter::RunRound(std::vector<Waiting> waiting) {
  const bool alone = waiting.size() == 1;
  const absl::Status health = database_->latch()->status();
  std::vector<Answer> answers;
  std::vector<Pending> pending;
  RocksDbRound round(database_, limits_, position_);
  for (Waiting& one : waiting) {
    if (!health.ok()) {
      answers.push_back({std::move(one.done), SwapNotApplied{.status = StoppedError(health)}});
      continue;
    }
    Verdict verdict = round.Add(std::move(one.swap));
    if (verdict.depends_on_batch) {
      pending.push_back({std::move(one.done), std::move(verdict)});
    } else {
      answers.push_back({std::move(one.done), Committed(std::move(verdict))});
    }
  }
  Deliver(std::move(answers), alone);
  if (pending.empty()) return;
  const absl::Status written = Write(&round);
  answers.clear();
  answers.reserve(pending.size());
  for (Pending& one : pending) {
    answers.push_back({std::move(one.done), written.ok() ? Committed(std::move(one.verdict))
                                                         : Failed(one.verdict, written)});
  }
  Deliver(std::move(answers), alone);
}

absl::Status RocksDbCommitter::Write(RocksDbRound* round) {
  const absl::StatusOr<rocksdb::WriteBatch*> batch = round->Finish();
  absl::Status status = batch.status();
  if (batch.ok()) {
    rocksdb::WriteOptions durable;
    durable.sync = true;
    const rocksdb::Status written = database_->db()->Write(durable, *batch);
    if (!written.ok()) status = ToStatus("a write to the store failed", written);
  }
  if (!status.ok()) {
    LOG(ERROR) << "store write failed error=\"" << status.message() << '"';
    // First of all, so that nobody who hears of this still finds the store well.
    database_->latch()->Fail(status);
    return status;
  }
  position_ = round->position();
  revision_.store(position_.revision, std::memory_order_release);
  return absl::OkStatus();
}

void RocksDbCommitter::Deliver(std::vector<Answer> answers, bool alone) {
  if (answers.empty()) return;
  if (alone) {
    Answer& answer = answers.front();
    answer.done(std::move(answer.outcome));
    return;
  }
  completions_.Post([answers = std::move(answers)]() mutable {
    for (Answer& answer : answers) answer.done(std::move(answer.outcome));
  });
}

}  // namespace claimd::store
