#include "server/store/worker_pool.h"

#include <cstddef>
#include <thread>
#include <utility>

#include "server/base/mutex.h"

namespace claimd::store {

WorkerPool::WorkerPool(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  posted_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(Task task) {
  {
    const base::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  posted_.NotifyOne();
}

void WorkerPool::Run() {
  mutex_.Lock();
  while (true) {
    while (tasks_.empty() && !(stopping_ && running_ == 0)) posted_.Wait(&mutex_);
    if (tasks_.empty()) break;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    mutex_.Unlock();
    task();
    task = nullptr;  // What it owns goes while no lock is held.
    mutex_.Lock();
    --running_;
    if (stopping_ && running_ == 0 && tasks_.empty()) posted_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace claimd::store
