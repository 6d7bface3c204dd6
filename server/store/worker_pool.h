#ifndef CLAIMD_SERVER_STORE_WORKER_POOL_H_
#define CLAIMD_SERVER_STORE_WORKER_POOL_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "server/base/mutex.h"

namespace claimd::store {

// A fixed number of threads that run tasks in the order in which they were posted. Thread-safe.
class WorkerPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // REQUIRES: threads > 0.
  explicit WorkerPool(int threads);
  // Runs all tasks that were posted, those posted by tasks included.
  ~WorkerPool() ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  base::Mutex mutex_;
  base::CondVar posted_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  // Tasks that run now, and can post others.
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_WORKER_POOL_H_
