#ifndef CLAIMD_RANGE_H_
#define CLAIMD_RANGE_H_

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace claimd {

// A listing that fetches its pages as it is walked. It can be walked once; copies share the walk.
// A page that cannot be read is the last element and holds the error.
//
//   for (const absl::StatusOr<claimd::ShardManifest>& shard : client.List("orders")) {
//     if (!shard.ok()) return shard.status();
//     Print(*shard);
//   }
//
// Not thread-safe. Advancing blocks for a call to the server whenever a page is used up.
template <typename T>
class Range {
  struct Walk;

 public:
  struct Page {
    std::vector<T> items;
    // Empty on the last page.
    std::string next_page_token;
  };
  // Reads the page that belongs to a token; "" is the first one.
  using FetchPage = std::function<absl::StatusOr<Page>(const std::string& page_token)>;

  explicit Range(FetchPage fetch) : walk_(std::make_shared<Walk>(std::move(fetch))) {}

  // NOLINTBEGIN(readability-identifier-naming): the names that the standard library looks for.
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = absl::StatusOr<T>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;
    // NOLINTEND(readability-identifier-naming)

    iterator() = default;

    reference operator*() const { return walk_->current; }
    pointer operator->() const { return &walk_->current; }
    iterator& operator++() {
      if (!walk_->Advance()) walk_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }

    friend bool operator==(const iterator& a, const iterator& b) { return a.walk_ == b.walk_; }
    friend bool operator!=(const iterator& a, const iterator& b) { return !(a == b); }

   private:
    friend class Range;
    explicit iterator(std::shared_ptr<typename Range::Walk> walk) : walk_(std::move(walk)) {}

    std::shared_ptr<typename Range::Walk> walk_;
  };

  // Goes to the first element. REQUIRES: not called before on this range or a copy of it.
  iterator begin() const { return walk_->Advance() ? iterator(walk_) : iterator(); }
  iterator end() const { return iterator(); }

  // Walks the whole listing. Errors: that of the first page that could not be read.
  absl::StatusOr<std::vector<T>> ToVector() const {
    std::vector<T> all;
    while (walk_->Advance()) {
      if (!walk_->current.ok()) return walk_->current.status();
      all.push_back(*std::move(walk_->current));
    }
    return all;
  }

 private:
  struct Walk {
    explicit Walk(FetchPage fetch_page) : fetch(std::move(fetch_page)) {}

    // Puts the next element into 'current'; false at the end.
    bool Advance() {
      while (next == page.items.size()) {
        if (done) return false;
        absl::StatusOr<Page> fetched = fetch(page.next_page_token);
        if (fetched.ok() && !fetched->next_page_token.empty() &&
            fetched->next_page_token == page.next_page_token) {
          fetched = absl::InternalError("The server answered the page token that it was given.");
        }
        if (!fetched.ok()) {
          done = true;
          page = Page();
          next = 0;
          current = fetched.status();
          return true;
        }
        page = *std::move(fetched);
        next = 0;
        done = page.next_page_token.empty();
      }
      current = std::move(page.items[next++]);
      return true;
    }

    FetchPage fetch;
    Page page;
    size_t next = 0;
    bool done = false;
    absl::StatusOr<T> current = absl::UnknownError("The walk has not begun.");
  };

  std::shared_ptr<Walk> walk_;
};

}  // namespace claimd

#endif  // CLAIMD_RANGE_H_
