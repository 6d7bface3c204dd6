#include "client/ctl/progress.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/ctl/context.h"

namespace claimd::ctl {
namespace {

constexpr uint64_t kItemsPerLine = 1'000;
constexpr absl::Duration kRedrawAfter = absl::Milliseconds(100);

}  // namespace

Progress::Progress(const Context& context, std::string what, uint64_t total)
    : terminal_(context.terminal()), what_(std::move(what)), total_(total) {}

std::string Progress::Text() const {
  return total_ == 0 ? absl::StrCat(what_, " ", done_)
                     : absl::StrCat(what_, " ", done_, " of ", total_);
}

void Progress::Step() {
  ++done_;
  if (!terminal_.err_is_watched) {
    if (done_ % kItemsPerLine == 0) *terminal_.err << Text() << std::endl;
    return;
  }
  const absl::Time now = absl::Now();
  if (now - last_drawn_ < kRedrawAfter) return;
  last_drawn_ = now;
  drawn_ = true;
  *terminal_.err << "\r" << Text() << std::flush;
}

void Progress::Clear() {
  if (!drawn_) return;
  // Back to the start of the line, and erase it.
  *terminal_.err << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace claimd::ctl
