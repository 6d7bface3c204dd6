"""import-lance and export-lance of claimctl against a real claimd, on manifests of real tables."""

import json
import pathlib
import shutil
import tempfile
import unittest
import uuid

from claimctl import (DATA, LOST, NOT_FOUND, OK, REFUSED, SOME_REFUSED, STATE, UNAVAILABLE,
                      ClaimctlTest, fresh_shard)

EVENTS = "aa48498d-ac91-59e2-8452-69f46010ace2"
USERS = "8e131bde-8368-54ff-89d9-c2e1cc781b29"
NOWHERE = "127.0.0.1:1"


def version_of(path):
    return int(path.name[:64][::-1], 2)


def file_name(version):
    return f"{version:064b}"[::-1] + ".binpb"


def varint(number):
    encoded = b""
    while number >= 0x80:
        encoded += bytes([number & 0x7f | 0x80])
        number >>= 7
    return encoded + bytes([number])


def manifest(shard, version=1, epoch=1):
    """The bytes of a manifest without sstables, as Lance writes them."""
    return (b"\x08" + varint(version) + b"\x10" + varint(epoch) + b"\x30\x01" + b"\x50\x01" +
            b"\x5a\x12\x0a\x10" + uuid.UUID(shard).bytes)


def newest_manifests(tree):
    """Bytes of the newest manifest of each shard below a tree, by its path in it."""
    newest = {}
    for path in sorted(tree.glob("*.lance/_mem_wal/*/manifest/*.binpb"), key=version_of):
        newest[path.parent.relative_to(tree)] = (path.name, path.read_bytes())
    return {folder / name: content for folder, (name, content) in newest.items()}


class LanceTest(ClaimctlTest):
    """Each test works on tables of its own name, since a server keeps what it took over."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.mark = uuid.uuid4().hex[:8]

    def copy(self, *tables, tree="lance"):
        """A tree with copies of real tables, named 'table-mark'."""
        target = self.folder / "tree"
        for table in tables:
            shutil.copytree(DATA / tree / f"{table}.lance",
                            target / f"{self.name(table)}.lance")
        return target

    def name(self, table):
        return f"{table}-{self.mark}"

    def manifests(self, table, shard):
        return (self.folder / "tree" / f"{self.name(table)}.lance" / "_mem_wal" / shard /
                "manifest")

    def outcomes(self, code, *words):
        """Outcome and item of each shard, by table and shard."""
        items = self.json_lines(*words, code=code)
        return {(item["table"], item["shardId"]): item for item in items}


class ImportTest(LanceTest):
    def test_real_tables_go_on_from_their_version_and_epoch(self):
        tree = self.copy("events", "tenants", "users")
        out = self.run_code(OK, "import-lance", tree).stdout
        self.assertRegex(out, rf"(?m)^{self.name('users')} +4 +0$")
        self.assertIn("8 shards: 8 imported, 0 refused", out)
        for path in newest_manifests(tree):
            table, shard = path.parts[0][:-len(".lance")], path.parts[2]
            stored = self.json("get", table, shard)
            self.assertEqual(int(stored["version"]), version_of(path))
            self.assertNotIn("claim", stored)
            for spec in ("0", "2"):
                error = self.error(REFUSED, "claim", table, shard, f"--spec={spec}")
                self.assertEqual(error["reason"], "SHARD_SPEC_MISMATCH")
            claim = self.json("claim", table, shard, "--spec=1")
            self.assertEqual(int(claim["writerEpoch"]), int(stored["writerEpoch"]) + 1)
            self.assertEqual(int(claim["manifest"]["version"]), int(stored["version"]) + 1)
            self.assertEqual(claim["manifest"]["sstables"], stored["sstables"])
        users = self.json("get", self.name("users"), USERS)
        self.assertEqual((users["version"], users["writerEpoch"], users["currentGeneration"]),
                         ("9", "4", "4"))
        self.assertEqual(users["sstables"][0],
                         {"generation": "1", "path": "6d941560_gen_1", "inMemoryBytes": "56",
                          "physicalRows": "1", "primaryKeyBytes": "9"})

    def test_odd_tables(self):
        tree = self.copy("sealed_active_writer", "garbage_tip", "status2", tree="lance-odd")
        result = self.run_code(SOME_REFUSED, "import-lance", tree)
        self.assertIn("3 shards: 1 imported, 2 refused", result.stdout)
        self.assertIn(str(self.manifests("garbage_tip", EVENTS) / file_name(6)), result.stdout)
        self.assertIn("status is 2", result.stdout)

        sealed = self.name("sealed_active_writer")
        self.assertEqual(self.json("get", sealed, EVENTS)["status"], "SHARD_STATUS_SEALED")
        self.assertEqual(self.error(STATE, "claim", sealed, EVENTS, "--spec=1")["reason"],
                         "SHARD_SEALED")
        for table in ("garbage_tip", "status2"):
            self.error(NOT_FOUND, "get", self.name(table), EVENTS)

    def test_json_names_every_shard_and_problem(self):
        tree = self.copy("garbage_tip", tree="lance-odd")
        self.copy("events")
        report = self.json("import-lance", tree, code=SOME_REFUSED)
        self.assertEqual((report["dryRun"], report["imported"], report["refused"]),
                         (False, "1", "1"))
        by_table = {item["table"]: item for item in report["shards"]}
        refused = by_table[self.name("garbage_tip")]
        self.assertEqual((refused["outcome"], refused["reason"], refused["version"]),
                         ("REFUSED", "INVALID_MANIFEST", "6"))
        self.assertEqual(refused["problems"][0]["path"],
                         str(self.manifests("garbage_tip", EVENTS) / file_name(6)))
        imported = by_table[self.name("events")]
        self.assertEqual((imported["outcome"], imported["version"], imported["writerEpoch"]),
                         ("IMPORTED", "17", "6"))

    def test_dry_run_needs_no_server_and_changes_nothing(self):
        tree = self.copy("events")
        self.copy("garbage_tip", tree="lance-odd")
        result = self.run_code(SOME_REFUSED, "import-lance", tree, "--dry-run", server=NOWHERE)
        self.assertIn("1 would be imported, 1 refused", result.stdout)
        items = self.outcomes(SOME_REFUSED, "import-lance", tree, "--dry-run")
        self.assertEqual(items[(self.name("events"), EVENTS)]["outcome"], "WOULD_BE_IMPORTED")
        self.assertEqual(self.json("list", self.name("events")), {"shards": []})

    def test_repeated_import_is_harmless_until_somebody_claims(self):
        tree = self.copy("tenants")
        self.run_code(OK, "import-lance", tree)
        self.run_code(OK, "import-lance", tree)
        shard = newest_manifests(tree).popitem()[0].parts[2]
        claim = self.json("claim", self.name("tenants"), shard, "--spec=1")
        items = self.outcomes(SOME_REFUSED, "import-lance", tree)
        refused = items[(self.name("tenants"), shard)]
        self.assertEqual((refused["outcome"], refused["reason"]), ("REFUSED", "SHARD_EXISTS"))
        self.assertEqual(self.json("get", self.name("tenants"), shard), claim["manifest"])
        self.assertIn("never overwrites",
                      self.run_code(SOME_REFUSED, "import-lance", tree).stdout)

    def test_hint_and_temporary_files_decide_nothing(self):
        tree = self.copy("tenants")
        folders = sorted({path.parent for path in newest_manifests(tree)})
        for folder, hint in zip(folders, (None, '{"version":1}', "garbage")):
            path = tree / folder / "version_hint.json"
            path.unlink()
            if hint is not None:
                path.write_text(hint)
            (tree / folder / (file_name(6) + ".tmp.1234")).write_bytes(b"half")
        items = self.outcomes(OK, "import-lance", tree)
        self.assertEqual([item["version"] for item in items.values()], ["5", "5", "5"])
        self.assertEqual([item["notes"] for item in items.values()], [[], [], []])

    def test_one_broken_shard_of_each_kind_does_not_stop_the_others(self):
        tree = self.copy("users", "tenants")
        users = self.manifests("users", USERS)
        tip = users / file_name(8)
        foreign = self.manifests("users", "4a388480-a25b-59a8-b058-24217f980256") / file_name(11)
        foreign.write_bytes(tip.read_bytes())
        tip.write_bytes(b"")
        gap = self.manifests("tenants", "5a93250c-c9e0-51ef-aad8-7783b076445a")
        (gap / file_name(3)).unlink()
        (users / "notes.txt").write_text("a person was here")
        items = self.outcomes(SOME_REFUSED, "import-lance", tree)
        problems = {item["path"]: item["problems"][0]["problem"] for item in items.values()
                    if item["outcome"] == "REFUSED"}
        self.assertEqual(len(problems), 3)
        self.assertIn("is empty", problems[str(users.parent)])
        self.assertIn("shard_id is " + USERS, problems[str(foreign.parent.parent)])
        self.assertIn("missing version 3", problems[str(gap.parent)])
        self.assertEqual(sum(item["outcome"] == "IMPORTED" for item in items.values()), 4)
        out = self.run_code(SOME_REFUSED, "import-lance", tree).stdout
        self.assertIn(str(users / "notes.txt"), out)

    def test_one_table_can_be_named(self):
        tree = self.copy("events", "users")
        self.run_code(OK, "import-lance", tree / f"{self.name('events')}.lance")
        self.run_code(OK, "get", self.name("events"), EVENTS)
        self.assertEqual(self.json("list", self.name("users")), {"shards": []})

    def test_nothing_to_import(self):
        for path in (self.folder, self.folder / "absent"):
            result = self.run_code(NOT_FOUND, "import-lance", path)
            self.assertIn(str(path), result.stderr)

    def test_large_tree_shows_progress(self):
        table = self.folder / f"{self.name('large')}.lance"
        for _ in range(1100):
            shard = fresh_shard()
            folder = table / "_mem_wal" / shard / "manifest"
            folder.mkdir(parents=True)
            (folder / file_name(1)).write_bytes(manifest(shard))
        result = self.run_code(OK, "import-lance", self.folder)
        self.assertIn("1000 of 1100", result.stderr)
        self.assertIn("1100 shards: 1100 imported, 0 refused", result.stdout)
        self.assertEqual(len(self.json_lines("list", self.name("large"))), 1100)

    def test_no_server(self):
        tree = self.copy("events")
        result = self.run_code(UNAVAILABLE, "import-lance", tree, "--timeout=1s", server=NOWHERE)
        self.assertIn("0 imported", result.stdout)


class ExportTest(LanceTest):
    def export(self, code, *tables, target="out"):
        return self.run_code(code, "export-lance", self.folder / target,
                             *(self.name(table) for table in tables))

    def test_imported_shards_come_back_byte_for_byte(self):
        tables = ("events", "tenants", "users")
        tree = self.copy(*tables)
        self.copy("sealed_active_writer", tree="lance-odd")
        self.run_code(OK, "import-lance", tree)
        out = self.export(OK, *tables, "sealed_active_writer").stdout
        self.assertIn("9 shards: 9 exported, 0 refused", out)
        exported = newest_manifests(self.folder / "out")
        self.assertEqual(exported, newest_manifests(tree))
        # Nothing else is there but the hints, without which Lance's readers would not find them.
        names = {path.name for path in (self.folder / "out").rglob("*") if path.is_file()}
        self.assertEqual(names, {path.name for path in exported} | {"version_hint.json"})
        for path in exported:
            hint = json.loads((self.folder / "out" / path.parent / "version_hint.json").read_text())
            self.assertEqual(hint, {"version": version_of(path)})

    def test_exported_tree_can_be_imported_elsewhere(self):
        self.run_code(OK, "import-lance", self.copy("users"))
        self.export(OK, "users")
        copy = self.name("copy")
        (self.folder / "out" / f"{self.name('users')}.lance").rename(
            self.folder / "out" / f"{copy}.lance")
        self.run_code(OK, "import-lance", self.folder / "out")
        own, other = (self.json("get", table, USERS) for table in (self.name("users"), copy))
        for field in ("table", "createTime", "updateTime"):
            own.pop(field)
            other.pop(field)
        self.assertEqual(own, other)

    def test_nothing_is_overwritten(self):
        tree = self.copy("events")
        self.run_code(OK, "import-lance", tree)
        self.export(OK, "events")
        self.export(OK, "events")
        path = self.folder / "out" / newest_manifests(self.folder / "out").popitem()[0]
        path.write_bytes(b"of somebody else")
        out = self.export(SOME_REFUSED, "events").stdout
        self.assertIn("another version 17", out)
        self.assertEqual(path.read_bytes(), b"of somebody else")

    def test_next_version_stands_behind_what_is_there_and_no_gap_is_made(self):
        self.run_code(OK, "import-lance", self.copy("events"))
        self.export(OK, "events")
        self.run_code(OK, "claim", self.name("events"), EVENTS, "--spec=1", "--claimant=us")
        self.export(OK, "events")
        folder = (self.folder / "out" / f"{self.name('events')}.lance" / "_mem_wal" / EVENTS /
                  "manifest")
        self.assertTrue((folder / file_name(18)).exists())
        for _ in range(2):
            self.run_code(OK, "claim", self.name("events"), EVENTS, "--spec=1")
        self.assertIn("empty directory", self.export(SOME_REFUSED, "events").stdout)
        self.assertFalse((folder / file_name(20)).exists())
        self.export(OK, "events", target="fresh")

    def test_what_lance_cannot_say_is_noted(self):
        table = self.name("ours")
        self.run_code(OK, "claim", table, fresh_shard(), "--fingerprint=c0ffee")
        self.assertIn("fingerprint", self.export(OK, "ours").stdout)

    def test_unknown_table(self):
        self.assertIn("no shards", self.export(NOT_FOUND, "nothing").stderr)

    def test_stale_epoch_of_the_lance_side_is_fenced(self):
        self.run_code(OK, "import-lance", self.copy("events"))
        self.run_code(OK, "check", self.name("events"), EVENTS, 6)
        self.run_code(OK, "claim", self.name("events"), EVENTS, "--spec=1")
        self.assertEqual(self.error(LOST, "check", self.name("events"), EVENTS, 6)["reason"],
                         "WRITER_FENCED")


if __name__ == "__main__":
    unittest.main()
