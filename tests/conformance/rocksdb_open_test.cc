#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_directory.h"
#include "server/store/rocksdb_keys.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_store.h"
#include "server/store/shard_key.h"
#include "server/store/store_factory.h"
#include "tests/conformance/rocksdb_test_util.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A refusal is one sentence: no line breaks, and the path that it is about.
void ExpectRefusal(const absl::Status& status, absl::StatusCode code, const std::string& path,
                   const std::string& words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

class RocksDbOpenTest : public ::testing::Test {
 protected:
  // Makes a store with one shard, and closes it.
  void MakeStore() const {
    const auto store = MustOpen(dir_);
    MustSwap(store.get(), Create(KeyOf("t", 1), "r1"));
  }

  const ScopedDirectory scope_;
  const std::string dir_ = scope_.At("store");
};

TEST_F(RocksDbOpenTest, MakesTheDirectoryForItsOwnerOnly) {
  MakeStore();
  struct stat info {};
  ASSERT_EQ(stat(dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(RocksDbOpenTest, TakesAnEmptyDirectoryAndOneWithNothingButLostAndFound) {
  std::filesystem::create_directories(dir_ + "/lost+found");
  EXPECT_TRUE(TryOpen(dir_).ok());
  EXPECT_TRUE(TryOpen(dir_).ok());
}

TEST_F(RocksDbOpenTest, TakesAPathWithASlashAtItsEnd) {
  EXPECT_TRUE(TryOpen(dir_ + "/").ok());
  EXPECT_TRUE(TryOpen(dir_).ok());
}

TEST_F(RocksDbOpenTest, MissingParentIsRefused) {
  const std::string path = scope_.At("missing/store");
  ExpectRefusal(TryOpen(path), absl::StatusCode::kNotFound, path, "does not exist");
  EXPECT_FALSE(std::filesystem::exists(scope_.At("missing")));
}

TEST_F(RocksDbOpenTest, FileIsRefused) {
  WriteFile(dir_, "not a directory");
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_, "is not a directory");
}

TEST_F(RocksDbOpenTest, DirectoryOfSomebodyElseIsRefusedAndLeftAlone) {
  std::filesystem::create_directory(dir_);
  WriteFile(dir_ + "/thesis.tex", "years of work");
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_,
                "is not a claimd store");
  EXPECT_THAT(NamesIn(dir_), ElementsAre("thesis.tex"));
}

TEST_F(RocksDbOpenTest, RocksDbOfSomebodyElseIsRefused) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir_, &db).ok());
  delete db;
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_,
                "is not a claimd store");
}

// Runs 'body' in a process of its own while that process holds the lock of the store.
void WhileAnotherProcessLocks(const std::string& lock_path, const std::function<void()>& body) {
  std::array<int, 2> locked{};
  std::array<int, 2> release{};
  ASSERT_EQ(pipe(locked.data()), 0);
  ASSERT_EQ(pipe(release.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(release[1]);
    const int fd = open(lock_path.c_str(), O_RDWR);
    struct flock whole_file {};
    whole_file.l_type = F_WRLCK;
    char byte = fd >= 0 && fcntl(fd, F_SETLK, &whole_file) == 0 ? '+' : '-';
    if (write(locked[1], &byte, 1) == 1 && read(release[0], &byte, 1) == 0) _exit(0);
    _exit(1);
  }
  close(release[0]);
  char byte = 0;
  ASSERT_EQ(read(locked[0], &byte, 1), 1);
  EXPECT_EQ(byte, '+') << "the other process could not lock " << lock_path;
  body();
  close(release[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(locked[0]);
  close(locked[1]);
}

TEST_F(RocksDbOpenTest, StoreInUseByAnotherProcessIsRefused) {
  MakeStore();
  WhileAnotherProcessLocks(dir_ + "/LOCK", [this] {
    ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_,
                  "is in use by another process");
  });
  EXPECT_TRUE(TryOpen(dir_).ok());
}

TEST_F(RocksDbOpenTest, StoreThatIsOpenIsRefusedUntilItIsClosed) {
  auto store = MustOpen(dir_);
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_, "in use");
  MustSwap(store.get(), Create(KeyOf("t", 1), "r1"));
  store.reset();
  EXPECT_TRUE(TryOpen(dir_).ok());
}

TEST_F(RocksDbOpenTest, UnreadableDirectoryIsRefused) {
  std::filesystem::create_directory(dir_);
  std::filesystem::permissions(dir_, std::filesystem::perms::none);
  std::filesystem::permissions(scope_.path(), std::filesystem::perms(0755));
  const bool is_root = geteuid() == 0;
  constexpr uid_t kNobody = 65'534;
  ASSERT_EQ(is_root ? seteuid(kNobody) : 0, 0);  // Nothing is closed to root.
  const absl::Status status = TryOpen(dir_);
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  ExpectRefusal(status, absl::StatusCode::kPermissionDenied, dir_, "cannot be");
}

TEST_F(RocksDbOpenTest, StoreOfAnotherUserIsNotTakenForOneInUse) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a store and be somebody else";
  MakeStore();
  std::filesystem::permissions(scope_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(dir_, std::filesystem::perms(0777));
  ASSERT_EQ(seteuid(65'534), 0);
  const absl::Status status = TryOpen(dir_);
  ASSERT_EQ(seteuid(0), 0);
  ExpectRefusal(status, absl::StatusCode::kPermissionDenied, dir_, "cannot be");
}

TEST_F(RocksDbOpenTest, NewerFormatInTheStoreIsRefused) {
  MakeStore();
  std::string format;
  rocksdb_keys::AppendFixed64(kRocksDbFormatVersion + 1, &format);
  Overwrite(dir_, Family::kMeta, kMetaFormat, format);
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_, "format 2");
}

TEST_F(RocksDbOpenTest, NewerFormatInTheMarkerIsRefusedBeforeAnythingIsTouched) {
  MakeStore();
  WriteFile(dir_ + "/" + kRocksDbMarkerFile, "claimd store, format 2 and more\n");
  ChangeDatabase(dir_, [](RocksDatabase* database) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    ASSERT_TRUE(database->db()->CreateColumnFamily({}, "of-the-future", &handle).ok());
    ASSERT_TRUE(database->db()->DestroyColumnFamilyHandle(handle).ok());
  });
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kFailedPrecondition, dir_, "format 2");
}

TEST_F(RocksDbOpenTest, MarkerThatIsNoneIsCorruption) {
  MakeStore();
  WriteFile(dir_ + "/" + kRocksDbMarkerFile, "what is this\n");
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kDataLoss, dir_, "is not the marker");
}

TEST_F(RocksDbOpenTest, StoreWhoseFilesAreGoneIsNotMadeAnew) {
  MakeStore();
  std::filesystem::remove(dir_ + "/CURRENT");
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kDataLoss, dir_, "is corrupt");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/CURRENT")) << "a new store was begun";
}

TEST_F(RocksDbOpenTest, StoreWithoutIdentityIsCorrupt) {
  for (const char* key : {kMetaFormat, kMetaStoreId, kMetaTokenKey, kMetaRevision}) {
    std::filesystem::remove_all(dir_);
    MakeStore();
    Overwrite(dir_, Family::kMeta, key, "short");
    ExpectRefusal(TryOpen(dir_), absl::StatusCode::kDataLoss, dir_, key);
  }
}

TEST_F(RocksDbOpenTest, RevisionThatIsNotThatOfTheNewestChangeIsCorruption) {
  MakeStore();
  std::string revision;
  rocksdb_keys::AppendFixed64(7, &revision);
  rocksdb_keys::AppendFixed64(1, &revision);
  Overwrite(dir_, Family::kMeta, kMetaRevision, revision);
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kDataLoss, dir_, "revision 7");
}

TEST_F(RocksDbOpenTest, DamagedRocksDbManifestIsCorruption) {
  MakeStore();
  for (const std::string& name : NamesIn(dir_)) {
    if (name.rfind("MANIFEST-", 0) != 0) continue;
    std::string bytes = ReadFile(dir_ + "/" + name);
    bytes[bytes.size() / 2] ^= 0x01;
    WriteFile(dir_ + "/" + name, bytes);
  }
  ExpectRefusal(TryOpen(dir_), absl::StatusCode::kDataLoss, dir_, "is corrupt");
}

TEST_F(RocksDbOpenTest, StoreThatWasNotFinishedIsFinished) {
  std::filesystem::create_directory(dir_);
  WriteFile(dir_ + "/" + kRocksDbMarkerFile, "claimd store, format 1, unfinished\n");
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir_, &db).ok());
  delete db;
  auto store = MustOpen(dir_);
  const auto id = store->Info().store_id;
  store.reset();
  EXPECT_EQ(MustOpen(dir_)->Info().store_id, id);
}

TEST_F(RocksDbOpenTest, OptionsThatKeepNothingAreRefused) {
  RocksDbOptions options;
  options.retention.history_versions = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(RocksDbStore::Open(dir_, std::move(options)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RocksDbStore::Open("", RocksDbOptions()).status()));
}

std::unique_ptr<RocksDbStore> OpenWith(const std::string& directory, uint64_t versions,
                                       uint64_t claims, uint64_t changes) {
  RocksDbOptions options;
  options.retention = {.history_versions = versions, .claim_history = claims};
  options.change_log = changes;
  auto store = RocksDbStore::Open(directory, std::move(options));
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

TEST_F(RocksDbOpenTest, ShorterHistoryIsReachedWithTheNextChangeOfAShard) {
  const ShardKey key = KeyOf("t", 1);
  ShardRecordPtr head;
  std::vector<std::string> ids;
  auto store = OpenWith(dir_, 10, 10, 100);
  for (int i = 1; i <= 8; ++i) {
    ids.push_back(absl::StrCat("r", i));
    head = MustSwap(store.get(), Claim(key, head, ids.back()));
  }
  store.reset();
  store = OpenWith(dir_, 2, 3, 100);
  EXPECT_EQ(KeptVersions(store.get(), key).size(), 8);
  head = MustSwap(store.get(), Claim(key, head, "r9"));
  EXPECT_THAT(KeptVersions(store.get(), key), ElementsAre(9, 8));
  EXPECT_THAT(KeptClaims(store.get(), key), ElementsAre(8, 7, 6));
  EXPECT_THAT(Remembered(store.get(), key, ids), ElementsAre("r6", "r7", "r8"));
  store.reset();
  // And longer again: what is gone stays gone.
  store = OpenWith(dir_, 10, 10, 100);
  MustSwap(store.get(), Claim(key, head, "r10"));
  EXPECT_THAT(KeptVersions(store.get(), key), ElementsAre(10, 9, 8));
}

// Revisions in the changes family.
std::vector<uint64_t> ChangesIn(const std::string& directory) {
  std::vector<uint64_t> revisions;
  ChangeDatabase(directory, [&revisions](RocksDatabase* database) {
    const std::unique_ptr<rocksdb::Iterator> it(
        database->db()->NewIterator(rocksdb::ReadOptions(), database->family(Family::kChanges)));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      revisions.push_back(*rocksdb_keys::DecodeNumber(it->key().ToString()));
    }
  });
  return revisions;
}

TEST_F(RocksDbOpenTest, LogOfChangesKeepsExactlySoMany) {
  auto store = OpenWith(dir_, 10, 10, 3);
  for (uint32_t i = 0; i < 5; ++i) MustSwap(store.get(), Create(KeyOf("t", i), "r"));
  store.reset();
  EXPECT_THAT(ChangesIn(dir_), ElementsAre(3, 4, 5));
  store = OpenWith(dir_, 10, 10, 2);
  EXPECT_EQ(store->Info().revision, 5);
  store.reset();
  EXPECT_THAT(ChangesIn(dir_), ElementsAre(4, 5));
  store = OpenWith(dir_, 10, 10, 2);
  MustSwap(store.get(), Create(KeyOf("t", 9), "r"));
  store.reset();
  EXPECT_THAT(ChangesIn(dir_), ElementsAre(5, 6));
}

TEST(StoreFactoryTest, OpensWhatTheSpecNames) {
  const ScopedDirectory scope;
  auto store = OpenStore(absl::StrCat("rocksdb:", scope.At("store")), StoreOptions());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Info().kind, "rocksdb");
  store = OpenStore("memory:", StoreOptions());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Info().kind, "memory");
}

TEST(StoreFactoryTest, SaysWhatASpecLooksLike) {
  for (const char* spec :
       {"", "rocksdb", "rocks:/tmp/x", "/var/lib/claimd", "memory", "memory:x"}) {
    const absl::Status status = OpenStore(spec, StoreOptions()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << spec << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rocksdb:DIR"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(OpenStore("rocksdb:", StoreOptions()).status()));
}

TEST(StoreFactoryTest, SaysThatEtcdIsNotInThisBuild) {
  const absl::Status status = OpenStore("etcd:127.0.0.1:2379/claimd", StoreOptions()).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not in this build"));
}

}  // namespace
}  // namespace claimd::store
