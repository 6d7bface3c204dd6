#include "tests/e2e/harness/temp_dir.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace claimd::e2e {

TempDir::TempDir() {
  // Short, because the path of a Unix socket has room for 107 bytes only.
  path_ = (std::filesystem::temp_directory_path() / "claimd-e2e-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Join(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

std::string ReadFile(const std::string& path) {
  const std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, absl::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    std::perror(path.c_str());
    std::abort();
  }
}

}  // namespace claimd::e2e
