#ifndef CLAIMD_TESTS_CLIENT_FAKE_ENVIRONMENT_H_
#define CLAIMD_TESTS_CLIENT_FAKE_ENVIRONMENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "claimd/client.h"
#include "client/src/core.h"
#include "client/src/environment.h"
#include "client/src/mutex.h"

namespace claimd::testing {

// Time that only passes when somebody sleeps, and chance that always says the same. Thread-safe.
// Must outlive the clients that use it.
class FakeEnvironment {
 public:
  internal::Environment Get() {
    return {.monotonic_now =
                [this] {
                  const internal::MutexLock lock(&mutex_);
                  return now_;
                },
            .sleep = [this](absl::Duration duration) { Sleep(duration); },
            .random_fraction = [] { return kFraction; },
            .new_request_id =
                [this] {
                  const internal::MutexLock lock(&mutex_);
                  return absl::StrCat("request-", ++ids_);
                }};
  }

  static constexpr double kFraction = 0.5;

  std::vector<absl::Duration> sleeps() const {
    const internal::MutexLock lock(&mutex_);
    return sleeps_;
  }

  void Advance(absl::Duration duration) {
    const internal::MutexLock lock(&mutex_);
    now_ += duration;
  }

 private:
  void Sleep(absl::Duration duration) {
    const internal::MutexLock lock(&mutex_);
    sleeps_.push_back(duration);
    now_ += duration;
  }

  mutable internal::Mutex mutex_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
  std::vector<absl::Duration> sleeps_ ABSL_GUARDED_BY(mutex_);
  int ids_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A client whose waits take no time. Aborts if the options are not accepted.
inline Client ConnectWith(ClientOptions options, FakeEnvironment* environment) {
  return internal::Access::MakeClient(
      internal::Core::Make(std::move(options), environment->Get()).value());
}

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_CLIENT_FAKE_ENVIRONMENT_H_
