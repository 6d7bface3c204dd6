#ifndef CLAIMD_SERVER_STORE_ROCKSDB_COMMITTER_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_COMMITTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_round.h"
#include "server/store/worker_pool.h"

namespace claimd::store {

// Group commit: one thread that decides swaps in the order in which they come and writes many with
// one sync. While one sync runs, the next round gathers. Thread-safe.
//
// After a write that failed nothing is written any more: the swaps of that round that may have
// landed are answered as unknown, all others as not applied.
class RocksDbCommitter {
 public:
  using Done = absl::AnyInvocable<void(SwapOutcome)>;

  // 'database' is not owned and must outlive this.
  RocksDbCommitter(const RocksDatabase* database, const RocksDbRound::Limits& limits,
                   RocksDbRound::Position position);
  // Answers everything that was submitted.
  ~RocksDbCommitter() ABSL_LOCKS_EXCLUDED(mutex_);
  RocksDbCommitter(const RocksDbCommitter&) = delete;
  RocksDbCommitter& operator=(const RocksDbCommitter&) = delete;

  // 'done' runs on a thread of this; on the caller's if this is being destroyed.
  void Submit(PreparedSwap swap, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Revision of the newest durable change.
  uint64_t revision() const { return revision_.load(std::memory_order_acquire); }

 private:
  struct Waiting {
    PreparedSwap swap;
    Done done;
  };
  struct Answer {
    Done done;
    SwapOutcome outcome;
  };
  // Swaps of a round whose answer depends on the write.
  struct Pending {
    Done done;
    RocksDbRound::Verdict verdict;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for swaps; empty when there will be none any more.
  std::vector<Waiting> TakeRound() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunRound(std::vector<Waiting> waiting);
  absl::Status Write(RocksDbRound* round);
  // Runs callbacks here if it is only one, so that a lone request is not handed on, else on the
  // other thread, so that this one goes on to the next sync.
  void Deliver(std::vector<Answer> answers, bool alone);

  const RocksDatabase* const database_;
  const RocksDbRound::Limits limits_;
  // Of the committer thread.
  RocksDbRound::Position position_;
  std::atomic<uint64_t> revision_;

  base::Mutex mutex_;
  base::CondVar submitted_;
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  WorkerPool completions_;
  std::thread thread_;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_COMMITTER_H_
