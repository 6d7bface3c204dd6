#ifndef CLAIMD_TESTS_E2E_HARNESS_TEMP_DIR_H_
#define CLAIMD_TESTS_E2E_HARNESS_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace claimd::e2e {

// A directory of its own, removed with everything in it at the end. Aborts if it cannot be made.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // A path inside. Nothing is made.
  std::string Join(absl::string_view name) const;

 private:
  std::string path_;
};

// The whole file, or "" if it is not there.
std::string ReadFile(const std::string& path);
// Replaces the file. Aborts if it cannot.
void WriteFile(const std::string& path, absl::string_view content);

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_TEMP_DIR_H_
