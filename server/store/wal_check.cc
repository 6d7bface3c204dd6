#include "server/store/wal_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include <rocksdb/env.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include "server/store/crc32c.h"

namespace claimd::store {
namespace {

// A log is a sequence of blocks; a block a sequence of fragments, none of which crosses its end. A
// fragment is a checksum of all that follows the length (4 bytes), the length of its payload (2), a
// type (1) and the payload. A record is one full fragment, or a first, any number of middle and a
// last one. Fewer bytes than a header at the end of a block are filler.
constexpr size_t kBlockSize = 32'768;
constexpr size_t kHeaderSize = 7;
enum FragmentType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// A record is a write batch: sequence number of its first change (8), number of changes (4),
// changes.
constexpr size_t kBatchHeaderSize = 12;

uint64_t ReadLittleEndian(absl::string_view bytes, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i > 0; --i) number = number << 8U | static_cast<uint8_t>(bytes[i - 1]);
  return number;
}

struct Header {
  uint32_t checksum = 0;
  size_t length = 0;
  uint8_t type = 0;
};

// REQUIRES: bytes.size() >= kHeaderSize.
Header ReadHeader(absl::string_view bytes) {
  return {.checksum = static_cast<uint32_t>(ReadLittleEndian(bytes, 4)),
          .length = static_cast<size_t>(ReadLittleEndian(bytes.substr(4), 2)),
          .type = static_cast<uint8_t>(bytes[6])};
}

// Checksums are stored so, since the checksum of bytes that hold checksums is weak.
uint32_t Masked(uint32_t crc) { return (crc >> 15U | crc << 17U) + 0xa282ead8U; }

// True if 'bytes' starts with an undamaged fragment.
bool StartsWithFragment(absl::string_view bytes) {
  if (bytes.size() < kHeaderSize) return false;
  const Header header = ReadHeader(bytes);
  if (header.type < kFull || header.type > kLast) return false;
  if (header.length > bytes.size() - kHeaderSize) return false;
  return Masked(ExtendCrc32c(0, bytes.substr(6, 1 + header.length))) == header.checksum;
}

// True if the fragment that 'bytes' starts with is all there, but its length is damaged.
bool IsWholeWithOtherLength(absl::string_view bytes) {
  const Header header = ReadHeader(bytes);
  uint32_t crc = 0;
  for (size_t end = 6; end < bytes.size(); ++end) {
    crc = ExtendCrc32c(crc, bytes.substr(end, 1));
    if (Masked(crc) == header.checksum) return true;
  }
  return false;
}

// True if a record starts somewhere behind the first byte of 'bytes'. It was written only after the
// one before it was synced.
bool HoldsLaterRecord(absl::string_view bytes) {
  for (size_t at = 1; at + kHeaderSize <= bytes.size(); ++at) {
    const uint8_t type = ReadHeader(bytes.substr(at)).type;
    if ((type == kFull || type == kFirst) && StartsWithFragment(bytes.substr(at))) return true;
  }
  return false;
}

bool AllZero(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == '\0'; });
}

// Follows one log, block by block.
class LogChecker {
 public:
  // 'block' is kBlockSize long but for the last one.
  absl::Status CheckBlock(absl::string_view block, bool is_last);

  // Where the last whole record's sequence numbers end, if there is a record.
  std::optional<uint64_t> next_sequence() const { return next_sequence_; }
  std::optional<uint64_t> first_sequence() const { return first_sequence_; }
  bool torn() const { return torn_ || in_record_; }
  uint64_t offset() const { return offset_; }

 private:
  // Decides whether the rest of the log is a torn tail.
  absl::Status CheckTail(absl::string_view rest, bool is_last);
  absl::Status CheckFragment(uint8_t type, absl::string_view payload);
  // Checks that the record that has ended goes on where the one before it ended.
  absl::Status CheckBatch();

  // Position of the fragment that is looked at.
  uint64_t offset_ = 0;
  bool torn_ = false;
  bool in_record_ = false;
  // The first bytes of the record that is looked at, which fragments can divide.
  std::string batch_header_;
  std::optional<uint64_t> first_sequence_;
  std::optional<uint64_t> next_sequence_;
};

absl::Status LogChecker::CheckBlock(absl::string_view block, bool is_last) {
  if (torn_) {
    if (AllZero(block)) return absl::OkStatus();
    return absl::DataLossError("zeros in the middle of the log");
  }
  const uint64_t block_start = offset_;
  while (block.size() >= kHeaderSize) {
    if (!StartsWithFragment(block)) return CheckTail(block, is_last);
    const Header header = ReadHeader(block);
    absl::Status good = CheckFragment(header.type, block.substr(kHeaderSize, header.length));
    if (!good.ok()) return good;
    block.remove_prefix(kHeaderSize + header.length);
    offset_ += kHeaderSize + header.length;
  }
  // A header that was cut short, unless it is the filler of a full block.
  if (is_last && !block.empty() && offset_ + block.size() != block_start + kBlockSize) torn_ = true;
  offset_ += block.size();
  return absl::OkStatus();
}

absl::Status LogChecker::CheckTail(absl::string_view rest, bool is_last) {
  const Header header = ReadHeader(rest);
  torn_ = true;
  if (header.type == kZero && header.length == 0) {
    // Space that the file system gave the file, and nothing was written to.
    if (AllZero(rest)) return absl::OkStatus();
    return absl::DataLossError("zeros in the middle of the log");
  }
  const size_t block_left = kBlockSize - offset_ % kBlockSize;
  const bool cut_short = is_last && header.length > rest.size() - kHeaderSize &&
                         header.length <= block_left - kHeaderSize && header.type >= kFull &&
                         header.type <= kLast;
  if (!cut_short) return absl::DataLossError("a damaged record");
  if (IsWholeWithOtherLength(rest)) return absl::DataLossError("a record with a damaged length");
  if (HoldsLaterRecord(rest)) return absl::DataLossError("a damaged record before a good one");
  return absl::OkStatus();
}

absl::Status LogChecker::CheckFragment(uint8_t type, absl::string_view payload) {
  const bool starts = type == kFull || type == kFirst;
  if (starts == in_record_) return absl::DataLossError("a part of a record is missing");
  if (starts) batch_header_.clear();
  absl::StrAppend(&batch_header_, payload.substr(0, kBatchHeaderSize - batch_header_.size()));
  in_record_ = type == kFirst || type == kMiddle;
  return in_record_ ? absl::OkStatus() : CheckBatch();
}

absl::Status LogChecker::CheckBatch() {
  if (batch_header_.size() < kBatchHeaderSize) return absl::DataLossError("a record without batch");
  const uint64_t sequence = ReadLittleEndian(batch_header_, 8);
  const uint64_t changes = ReadLittleEndian(absl::string_view(batch_header_).substr(8), 4);
  if (next_sequence_.has_value() && sequence != *next_sequence_) {
    return absl::DataLossError("a record is missing");
  }
  if (!first_sequence_.has_value()) first_sequence_ = sequence;
  next_sequence_ = sequence + changes;
  return absl::OkStatus();
}

absl::Status ReadError(absl::string_view path, const rocksdb::Status& status) {
  return absl::UnavailableError(
      absl::StrCat("the write-ahead log ", path, " cannot be read: ", status.ToString()));
}

absl::StatusOr<LogChecker> CheckLog(rocksdb::Env* env, const std::string& path) {
  std::unique_ptr<rocksdb::SequentialFile> file;
  rocksdb::Status read = env->NewSequentialFile(path, &file, rocksdb::EnvOptions());
  if (!read.ok()) return ReadError(path, read);
  LogChecker checker;
  std::vector<char> scratch(kBlockSize);
  std::string block;
  std::string next;
  const auto read_block = [&](std::string* into) {
    rocksdb::Slice bytes;
    read = file->Read(kBlockSize, &bytes, scratch.data());
    into->assign(bytes.data(), bytes.size());
  };
  for (read_block(&block); read.ok() && !block.empty(); block.swap(next)) {
    read_block(&next);
    if (!read.ok()) break;
    if (absl::Status good = checker.CheckBlock(block, next.empty()); !good.ok()) {
      return absl::DataLossError(absl::StrCat("the write-ahead log ", path, " is broken at byte ",
                                              checker.offset(), " (", good.message(),
                                              "): changes that were answered would be lost"));
    }
  }
  if (!read.ok()) return ReadError(path, read);
  return checker;
}

// Numbers and names of the logs, oldest first.
absl::StatusOr<std::vector<std::pair<uint64_t, std::string>>> FindLogs(
    rocksdb::Env* env, const std::string& directory) {
  std::vector<std::string> names;
  if (rocksdb::Status listed = env->GetChildren(directory, &names); !listed.ok()) {
    return ReadError(directory, listed);
  }
  std::vector<std::pair<uint64_t, std::string>> logs;
  for (const std::string& name : names) {
    absl::string_view stem = name;
    uint64_t number = 0;
    if (absl::ConsumeSuffix(&stem, ".log") && absl::SimpleAtoi(stem, &number)) {
      logs.emplace_back(number, absl::StrCat(directory, "/", name));
    }
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

}  // namespace

absl::Status CheckWriteAheadLogs(rocksdb::Env* env, const std::string& directory) {
  const auto logs = FindLogs(env, directory);
  if (!logs.ok()) return logs.status();
  // Set behind a torn tail: where the sequence numbers go on if nothing that was answered is lost.
  std::optional<uint64_t> expected;
  for (const auto& [number, path] : *logs) {
    const absl::StatusOr<LogChecker> log = CheckLog(env, path);
    if (!log.ok()) return log.status();
    if (expected.has_value() && log->first_sequence().has_value() &&
        *log->first_sequence() != *expected) {
      return absl::DataLossError(
          absl::StrCat("the write-ahead log before ", path,
                       " ends too early: changes that were answered would be "
                       "lost"));
    }
    if (log->first_sequence().has_value()) {
      expected = log->torn() ? log->next_sequence() : std::nullopt;
    }
  }
  return absl::OkStatus();
}

}  // namespace claimd::store
