#include "proto/lance/manifest_codec.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"
#include "lance/mem_wal.pb.h"

namespace claimd::lance {
namespace {

namespace wire = ::lance::mem_wal;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
constexpr size_t kUuidBytes = 16;
// Behind which of its bytes the text form of a UUID has a hyphen.
constexpr std::array<size_t, 4> kHyphenAfter = {4, 6, 8, 10};
constexpr absl::string_view kFileSuffix = ".binpb";
constexpr size_t kVersionBits = 64;
constexpr uint32_t kLanceActive = 0;
constexpr uint32_t kLanceSealed = 1;

// The problems of one manifest, all of them.
class Problems {
 public:
  void Add(absl::string_view field, absl::string_view description) {
    auto* violation = bad_request_.add_field_violations();
    violation->set_field(std::string(field));
    violation->set_description(std::string(description));
  }

  bool empty() const { return bad_request_.field_violations().empty(); }

  absl::Status ToStatus(absl::string_view table, absl::string_view shard_id) const {
    if (empty()) return absl::OkStatus();
    std::vector<std::string> texts;
    for (const auto& violation : bad_request_.field_violations()) {
      texts.push_back(absl::StrCat(violation.field(), " ", violation.description()));
    }
    absl::Status status = absl::InvalidArgumentError(absl::StrCat(
        "This is no manifest that can be taken over: ", absl::StrJoin(texts, "; "), "."));
    google::rpc::ErrorInfo info;
    info.set_reason("INVALID_MANIFEST");
    info.set_domain("claimd");
    (*info.mutable_metadata())["table"] = std::string(table);
    (*info.mutable_metadata())["shard_id"] = std::string(shard_id);
    SetPayload(info, &status);
    SetPayload(bad_request_, &status);
    return status;
  }

 private:
  static void SetPayload(const google::protobuf::Message& message, absl::Status* status) {
    status->SetPayload(absl::StrCat("type.googleapis.com/", message.GetDescriptor()->full_name()),
                       absl::Cord(message.SerializeAsString()));
  }

  google::rpc::BadRequest bad_request_;
};

std::string UuidText(absl::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (std::find(kHyphenAfter.begin(), kHyphenAfter.end(), i) != kHyphenAfter.end()) {
      text += '-';
    }
    absl::StrAppend(&text, absl::BytesToHexString(bytes.substr(i, 1)));
  }
  return text;
}

// The 16 bytes of a UUID in text form, or absent.
std::optional<std::string> UuidBytes(absl::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (absl::ascii_isxdigit(static_cast<unsigned char>(c))) digits += c;
  }
  if (digits.size() != 2 * kUuidBytes) return std::nullopt;
  std::string bytes = absl::HexStringToBytes(digits);
  if (UuidText(bytes) != absl::AsciiStrToLower(text)) return std::nullopt;
  return bytes;
}

bool HasUnknownFields(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

void CheckNumbers(const v1::ShardManifest& manifest, Problems* problems) {
  if (manifest.version() == 0) problems->Add("version", "is 0; versions begin at 1");
  if (manifest.version() == kMaxNumber) {
    problems->Add("version", "is 2^64-1, after which no other version can come");
  }
  if (manifest.writer_epoch() == kMaxNumber) {
    problems->Add("writer_epoch", "is 2^64-1, after which no other epoch can come");
  }
  if (manifest.current_generation() == 0) {
    problems->Add("current_generation", "is 0; generations begin at 1");
  }
}

void CheckSsTables(const v1::ShardManifest& manifest, Problems* problems) {
  std::set<uint64_t> seen;
  for (int i = 0; i < manifest.sstables_size(); ++i) {
    const uint64_t generation = manifest.sstables(i).generation();
    const std::string field = absl::StrCat("sstables[", i, "].generation");
    if (generation == 0) problems->Add(field, "is 0; generations begin at 1");
    if (generation >= manifest.current_generation() && manifest.current_generation() != 0) {
      problems->Add(field, absl::StrCat("is ", generation, ", not below current_generation ",
                                        manifest.current_generation()));
    }
    if (!seen.insert(generation).second) {
      problems->Add(field, absl::StrCat("is ", generation, ", which another sstable has"));
    }
  }
}

void CheckPlace(const v1::ShardManifest& manifest, const ManifestPlace& place, Problems* problems) {
  if (place.version.has_value() && *place.version != manifest.version()) {
    problems->Add("version", absl::StrCat("is ", manifest.version(), ", but the file's name says ",
                                          *place.version));
  }
  if (!place.shard_id.has_value() || manifest.shard_id().empty()) return;
  if (absl::AsciiStrToLower(*place.shard_id) != manifest.shard_id()) {
    problems->Add("shard_id", absl::StrCat("is ", manifest.shard_id(), ", but the path says ",
                                           *place.shard_id));
  }
}

void DecodeShardId(const wire::ShardManifest& lance, v1::ShardManifest* manifest,
                   Problems* problems) {
  if (!lance.has_shard_id()) {
    problems->Add("shard_id", "is missing");
  } else if (lance.shard_id().uuid().size() != kUuidBytes) {
    problems->Add("shard_id", absl::StrCat("has ", lance.shard_id().uuid().size(),
                                           " bytes; a UUID has ", kUuidBytes));
  } else {
    manifest->set_shard_id(UuidText(lance.shard_id().uuid()));
  }
}

void DecodeStatus(uint32_t status, v1::ShardManifest* manifest, Problems* problems) {
  if (status == kLanceActive) {
    manifest->set_status(v1::SHARD_STATUS_ACTIVE);
  } else if (status == kLanceSealed) {
    manifest->set_status(v1::SHARD_STATUS_SEALED);
  } else {
    problems->Add("status", absl::StrCat("is ", status,
                                         ", which is neither ACTIVE (0) nor SEALED (1); such a "
                                         "shard cannot be claimed"));
  }
}

void DecodeFieldEntries(const wire::ShardManifest& lance, v1::ShardManifest* manifest,
                        Problems* problems) {
  std::set<std::string> names;
  for (const auto& entry : lance.shard_field_entries()) {
    if (!names.insert(entry.field_id()).second) {
      problems->Add("shard_field_values",
                    absl::StrCat("has the field \"", absl::Utf8SafeCEscape(entry.field_id()),
                                 "\" more than once"));
    }
    (*manifest->mutable_shard_field_values())[entry.field_id()] = entry.value();
  }
  std::vector<size_t> order;
  for (const auto& entry : lance.shard_field_entries()) {
    order.push_back(
        static_cast<size_t>(std::distance(names.begin(), names.find(entry.field_id()))));
  }
  if (!std::is_sorted(order.begin(), order.end())) {
    (*manifest->mutable_annotations())[kFieldOrderAnnotation] = absl::StrJoin(order, ",");
  }
}

void DecodeSsTables(const wire::ShardManifest& lance, v1::ShardManifest* manifest) {
  for (const auto& from : lance.sstables()) {
    v1::SsTable* to = manifest->add_sstables();
    to->set_generation(from.generation());
    to->set_path(from.path());
    if (from.has_in_memory_bytes()) to->set_in_memory_bytes(from.in_memory_bytes());
    if (from.has_physical_rows()) to->set_physical_rows(from.physical_rows());
    if (from.has_primary_key_bytes()) to->set_primary_key_bytes(from.primary_key_bytes());
  }
}

void CheckUnknownFields(const wire::ShardManifest& lance, Problems* problems) {
  bool unknown = HasUnknownFields(lance) || HasUnknownFields(lance.shard_id());
  for (const auto& sstable : lance.sstables()) unknown = unknown || HasUnknownFields(sstable);
  for (const auto& entry : lance.shard_field_entries()) {
    unknown = unknown || HasUnknownFields(entry);
  }
  if (unknown) {
    problems->Add("manifest",
                  "has fields that this version of claimd does not know and would lose");
  }
}

// The entries' positions among the sorted field ids, in the order in which to write them.
std::vector<size_t> FieldOrder(const v1::ShardManifest& manifest) {
  std::vector<size_t> sorted(manifest.shard_field_values().size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  const auto annotation = manifest.annotations().find(kFieldOrderAnnotation);
  if (annotation == manifest.annotations().end()) return sorted;
  std::vector<size_t> order;
  for (const absl::string_view text : absl::StrSplit(annotation->second, ',')) {
    uint64_t position = 0;
    if (!absl::SimpleAtoi(text, &position)) return sorted;
    order.push_back(position);
  }
  return std::is_permutation(order.begin(), order.end(), sorted.begin(), sorted.end()) ? order
                                                                                       : sorted;
}

void EncodeFieldEntries(const v1::ShardManifest& manifest, wire::ShardManifest* lance) {
  std::vector<std::pair<std::string, std::string>> entries(manifest.shard_field_values().begin(),
                                                           manifest.shard_field_values().end());
  std::sort(entries.begin(), entries.end());
  for (const size_t position : FieldOrder(manifest)) {
    auto* entry = lance->add_shard_field_entries();
    entry->set_field_id(entries[position].first);
    entry->set_value(entries[position].second);
  }
}

void EncodeSsTables(const v1::ShardManifest& manifest, wire::ShardManifest* lance) {
  for (const auto& from : manifest.sstables()) {
    wire::SsTable* to = lance->add_sstables();
    to->set_generation(from.generation());
    to->set_path(from.path());
    if (from.has_in_memory_bytes()) to->set_in_memory_bytes(from.in_memory_bytes());
    if (from.has_physical_rows()) to->set_physical_rows(from.physical_rows());
    if (from.has_primary_key_bytes()) to->set_primary_key_bytes(from.primary_key_bytes());
  }
}

void EncodeStatus(const v1::ShardManifest& manifest, wire::ShardManifest* lance,
                  Problems* problems) {
  if (manifest.status() == v1::SHARD_STATUS_SEALED) {
    lance->set_status(kLanceSealed);
  } else if (manifest.status() != v1::SHARD_STATUS_ACTIVE) {
    problems->Add("status", "is neither ACTIVE nor SEALED; Lance knows no other");
  }
}

}  // namespace

const char kFieldOrderAnnotation[] = "lance.shard_field_order";

absl::StatusOr<v1::ShardManifest> DecodeManifest(absl::string_view bytes,
                                                 const ManifestPlace& place) {
  Problems problems;
  const std::string shard_id_of_place = place.shard_id.value_or("");
  if (bytes.empty()) {
    problems.Add("manifest", "is empty");
    return problems.ToStatus(place.table, shard_id_of_place);
  }
  wire::ShardManifest lance;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !lance.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    problems.Add("manifest", "cannot be decoded");
    return problems.ToStatus(place.table, shard_id_of_place);
  }

  v1::ShardManifest manifest;
  manifest.set_table(place.table);
  manifest.set_version(lance.version());
  manifest.set_shard_spec_id(lance.shard_spec_id());
  manifest.set_writer_epoch(lance.writer_epoch());
  manifest.set_replay_after_wal_entry_position(lance.replay_after_wal_entry_position());
  manifest.set_wal_entry_position_last_seen(lance.wal_entry_position_last_seen());
  manifest.set_current_generation(lance.current_generation());
  DecodeShardId(lance, &manifest, &problems);
  DecodeStatus(lance.status(), &manifest, &problems);
  DecodeFieldEntries(lance, &manifest, &problems);
  DecodeSsTables(lance, &manifest);
  CheckNumbers(manifest, &problems);
  CheckSsTables(manifest, &problems);
  CheckPlace(manifest, place, &problems);
  CheckUnknownFields(lance, &problems);
  if (problems.empty()) {
    const absl::StatusOr<std::string> again = EncodeManifest(manifest);
    if (!again.ok()) return again.status();
    if (*again != bytes) {
      problems.Add("manifest",
                   "is not written as Lance writes it, so that it would not come back "
                   "byte for byte");
    }
  }
  if (!problems.empty()) {
    return problems.ToStatus(place.table, place.shard_id.value_or(manifest.shard_id()));
  }
  return manifest;
}

absl::StatusOr<std::string> EncodeManifest(const v1::ShardManifest& manifest) {
  Problems problems;
  wire::ShardManifest lance;
  lance.set_version(manifest.version());
  lance.set_shard_spec_id(manifest.shard_spec_id());
  lance.set_writer_epoch(manifest.writer_epoch());
  lance.set_replay_after_wal_entry_position(manifest.replay_after_wal_entry_position());
  lance.set_wal_entry_position_last_seen(manifest.wal_entry_position_last_seen());
  lance.set_current_generation(manifest.current_generation());
  if (std::optional<std::string> id = UuidBytes(manifest.shard_id())) {
    lance.mutable_shard_id()->set_uuid(*std::move(id));
  } else {
    problems.Add("shard_id", "is no UUID");
  }
  EncodeStatus(manifest, &lance, &problems);
  CheckNumbers(manifest, &problems);
  CheckSsTables(manifest, &problems);
  if (!problems.empty()) return problems.ToStatus(manifest.table(), manifest.shard_id());
  EncodeFieldEntries(manifest, &lance);
  EncodeSsTables(manifest, &lance);
  return lance.SerializeAsString();
}

std::string ManifestFileName(uint64_t version) {
  std::string name;
  for (size_t bit = 0; bit < kVersionBits; ++bit) name += ((version >> bit) & 1U) != 0 ? '1' : '0';
  return absl::StrCat(name, kFileSuffix);
}

std::optional<uint64_t> VersionOfFileName(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kFileSuffix) || name.size() != kVersionBits) return std::nullopt;
  uint64_t version = 0;
  for (size_t bit = 0; bit < kVersionBits; ++bit) {
    if (name[bit] != '0' && name[bit] != '1') return std::nullopt;
    if (name[bit] == '1') version |= uint64_t{1} << bit;
  }
  return version;
}

}  // namespace claimd::lance
