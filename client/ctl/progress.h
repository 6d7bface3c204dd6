#ifndef CLAIMD_CLIENT_CTL_PROGRESS_H_
#define CLAIMD_CLIENT_CTL_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "client/ctl/context.h"

namespace claimd::ctl {

// Says on the terminal's 'err' how far a long job is: on one line that is drawn anew while a person
// watches, else on a line of its own for every thousand items. Silent for short jobs.
// Thread-compatible.
class Progress {
 public:
  // 'what' is said in front of the numbers; 'total' 0: not known.
  Progress(const Context& context, std::string what, uint64_t total);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more item is done.
  void Step();
  // Removes the line, so that something else can be written.
  void Clear();

 private:
  std::string Text() const;

  const Terminal& terminal_;
  const std::string what_;
  const uint64_t total_;
  uint64_t done_ = 0;
  bool drawn_ = false;
  absl::Time last_drawn_ = absl::InfinitePast();
};

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_PROGRESS_H_
