"""Every command of claimctl against a real claimd: outputs, exit codes, questions, completion."""

import json
import subprocess
import unittest

from claimctl import (BINARY, LOST, NOT_FOUND, OK, OTHER, REFUSED, STATE, UNAVAILABLE, USAGE,
                      ClaimctlTest, fresh_shard, run_claimctl)

COMMANDS = ["claim", "check", "release", "seal", "unseal", "drop", "init", "get", "list", "history",
            "claims", "health", "info", "import-lance", "export-lance", "completion", "help"]
# A port that nobody listens on: reserved, and not for any service.
NOWHERE = "127.0.0.1:1"


class ClaimTest(ClaimctlTest):
    def test_first_claim_makes_the_shard(self):
        shard = fresh_shard()
        out = self.run_code(OK, "claim", "orders", shard, "--spec", 1).stdout
        self.assertIn("Claimed under epoch 1; this made the shard.", out)
        for line in (f"shard +{shard}", "epoch +1", "version +1", "spec +1",
                     r"held by +tester \(claimctl\)"):
            self.assertRegex(out, rf"(?m)^{line}$")

    def test_json_is_that_of_the_response(self):
        shard = fresh_shard()
        first = self.json("claim", "orders", shard, "--spec=1", "--claimant=a", "--label=zone=eu")
        self.assertEqual(first["writerEpoch"], "1")
        self.assertIs(first["created"], True)
        self.assertNotIn("previousClaim", first)
        self.assertEqual(first["manifest"]["claim"]["labels"], {"zone": "eu"})
        second, = self.json_lines("claim", "orders", shard, "--spec=1", "--claimant=b")
        self.assertEqual(second["writerEpoch"], "2")
        self.assertIs(second["created"], False)
        self.assertEqual(second["previousClaim"]["claimant"], "a")
        self.assertEqual(second["manifest"]["shardId"], shard)
        self.assertEqual(second["manifest"]["status"], "SHARD_STATUS_ACTIVE")
        third = self.run_code(OK, "claim", "orders", shard, "--spec=1").stdout
        self.assertRegex(third, r"(?m)^fenced +b \(epoch 2, claimed (now|\d+s ago)\)$")

    def test_other_spec_is_refused_and_says_what_to_do(self):
        shard = fresh_shard()
        self.run_code(OK, "claim", "orders", shard, "--spec=1")
        for words in ([], ["--spec=2"]):
            error = self.error(REFUSED, "claim", "orders", shard, *words)
            self.assertEqual(error["reason"], "SHARD_SPEC_MISMATCH")
            self.assertEqual(error["metadata"]["stored_shard_spec_id"], "1")
            self.assertEqual(error["metadata"]["shard_id"], shard)
            self.assertIn("spec", error["next"])

    def test_if_free_is_refused_while_somebody_holds(self):
        shard = fresh_shard()
        epoch = self.json("claim", "orders", shard, "--claimant=holder")["writerEpoch"]
        error = self.error(STATE, "claim", "orders", shard, "--mode=if-free")
        self.assertEqual(error["reason"], "SHARD_HELD")
        self.assertEqual(error["metadata"]["claimant"], "holder")
        self.run_code(OK, "release", "orders", shard, epoch)
        self.run_code(OK, "claim", "orders", shard, "--mode=if-free")

    def test_expected_epoch_and_floor(self):
        shard = fresh_shard()
        self.run_code(OK, "claim", "orders", shard, "--expected-epoch=0")
        error = self.error(LOST, "claim", "orders", shard, "--expected-epoch=0")
        self.assertEqual(error["reason"], "EPOCH_MISMATCH")
        claim = self.json("claim", "orders", shard, "--expected-epoch=1", "--epoch-floor=40")
        self.assertEqual(claim["writerEpoch"], "41")
        error = self.error(REFUSED, "claim", "orders", shard, f"--epoch-floor={2**60}")
        self.assertEqual(error["reason"], "EPOCH_FLOOR_TOO_HIGH")

    def test_identity_is_stored_and_compared(self):
        shard = fresh_shard()
        self.run_code(OK, "claim", "orders", shard, "--field=bucket=hex:02000000",
                      "--field=region=eu", "--fingerprint=c0ffee")
        out = self.run_code(OK, "get", "orders", shard).stdout
        self.assertRegex(out, r"(?m)^fields +bucket=0x02000000 region=eu$")
        self.assertRegex(out, r"(?m)^fingerprint +c0ffee$")
        error = self.error(REFUSED, "claim", "orders", shard, "--fingerprint=c0ffef")
        self.assertEqual(error["reason"], "SHARD_SPEC_FINGERPRINT_MISMATCH")
        error = self.error(REFUSED, "claim", "orders", shard, "--field=region=us")
        self.assertEqual(error["reason"], "SHARD_IDENTITY_CONFLICT")

    def test_repeated_request_id_is_answered_again(self):
        shard = fresh_shard()
        claims = [self.json("claim", "orders", shard, "--request-id=once") for _ in range(2)]
        self.assertEqual([claim["writerEpoch"] for claim in claims], ["1", "1"])

    def test_malformed_fields_are_all_named(self):
        error = self.error(REFUSED, "claim", "", "no-uuid")
        self.assertEqual({violation["field"] for violation in error["fieldViolations"]},
                         {"table", "shard_id"})


class ShardTest(ClaimctlTest):
    def claimed(self, *words):
        shard = fresh_shard()
        self.run_code(OK, "claim", "orders", shard, *words)
        return shard

    def test_check(self):
        shard = self.claimed("--claimant=ingest")
        self.assertEqual(self.run_code(OK, "check", "orders", shard, 1).stdout,
                         "Epoch 1 is the newest (version 1, held by ingest).\n")
        self.run_code(OK, "claim", "orders", shard)
        check = self.json("check", "orders", shard, 2)
        self.assertEqual((check["version"], check["claim"]["writerEpoch"]), ("2", "2"))
        error = self.error(LOST, "check", "orders", shard, 1)
        self.assertEqual(error["reason"], "WRITER_FENCED")
        self.assertEqual(error["metadata"]["stored_writer_epoch"], "2")
        self.assertEqual(self.error(REFUSED, "check", "orders", shard, 3)["reason"],
                         "EPOCH_FROM_FUTURE")
        self.assertEqual(self.error(NOT_FOUND, "check", "orders", fresh_shard(), 1)["reason"],
                         "SHARD_NOT_FOUND")

    def test_get_and_its_versions(self):
        shard = self.claimed("--spec=3")
        self.run_code(OK, "seal", "orders", shard)
        self.assertEqual(self.json("get", "orders", shard)["status"], "SHARD_STATUS_SEALED")
        self.assertEqual(self.json("get", "orders", shard, "--version=1")["status"],
                         "SHARD_STATUS_ACTIVE")
        line, = self.json_lines("get", "orders", shard.upper(), "--version", 2)
        self.assertEqual((line["shardId"], line["version"]), (shard, "2"))
        self.assertRegex(self.run_code(OK, "get", "orders", shard).stdout, r"(?m)^status +SEALED$")
        self.assertEqual(self.error(NOT_FOUND, "get", "orders", shard, "--version=9")["reason"],
                         "VERSION_NOT_FOUND")
        self.error(NOT_FOUND, "get", "other", shard)

    def test_times_are_relative_or_exact(self):
        shard = self.claimed()
        self.assertRegex(self.run_code(OK, "get", "orders", shard).stdout,
                         r"(?m)^claimed +(now|(in )?\d+s( ago)?)$")
        self.assertRegex(self.run_code(OK, "get", "orders", shard, "--absolute").stdout,
                         r"(?m)^claimed +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_history(self):
        shard = self.claimed("--claimant=a")
        self.run_code(OK, "claim", "orders", shard, "--claimant=b")
        self.run_code(OK, "release", "orders", shard, 2)
        lines = self.run_code(OK, "history", "orders", shard).stdout.splitlines()
        self.assertEqual([line.split()[:2] for line in lines],
                         [["VERSION", "EPOCH"], ["3", "2"], ["2", "2"], ["1", "1"]])
        self.assertEqual([item["version"] for item in self.json("history", "orders", shard,
                                                                "--full")["manifests"]],
                         ["3", "2", "1"])
        self.assertEqual([item["version"] for item in
                          self.json_lines("history", "orders", shard, "--limit=2")], ["3", "2"])
        self.error(NOT_FOUND, "history", "orders", fresh_shard())

    def test_claims_of_a_dropped_shard(self):
        shard = self.claimed("--claimant=a", "--label=pod=x-1")
        self.run_code(OK, "claim", "orders", shard, "--claimant=b")
        self.assertRegex(self.run_code(OK, "claims", "orders", shard).stdout,
                         r"(?m)^ +2 +b .* held ")
        self.run_code(OK, "seal", "orders", shard)
        self.run_code(OK, "drop", "orders", shard, "--yes")
        records = self.json("claims", "orders", shard)["claims"]
        self.assertEqual([(record["claim"]["claimant"], record["endReason"]) for record in records],
                         [("b", "CLAIM_END_REASON_DROPPED"), ("a", "CLAIM_END_REASON_SUPERSEDED")])
        self.assertEqual(len(self.json_lines("claims", "orders", shard, "--limit=1")), 1)
        self.assertIn("pod=x-1", self.run_code(OK, "claims", "orders", shard).stdout)

    def test_release_needs_the_epoch(self):
        shard = self.claimed()
        self.run_code(OK, "claim", "orders", shard)
        self.assertEqual(self.error(LOST, "release", "orders", shard, 1)["reason"],
                         "WRITER_FENCED")
        released = self.json("release", "orders", shard, 2)
        self.assertNotIn("claim", released)
        self.assertEqual(released["writerEpoch"], "2")
        self.assertRegex(self.run_code(OK, "get", "orders", shard).stdout, "held by +nobody")

    def test_seal_and_unseal(self):
        shard = self.claimed()
        self.assertEqual(self.json("seal", "orders", shard)["status"], "SHARD_STATUS_SEALED")
        error = self.error(STATE, "claim", "orders", shard)
        self.assertEqual(error["reason"], "SHARD_SEALED")
        self.assertIn("unseal", error["next"])
        self.assertEqual(self.json("unseal", "orders", shard)["status"], "SHARD_STATUS_ACTIVE")
        self.run_code(OK, "claim", "orders", shard)

    def test_drop_asks_for_the_shard_id_again(self):
        shard = self.claimed("--claimant=holder")
        self.run_code(OK, "seal", "orders", shard)
        for answer in ("", "yes\n", fresh_shard() + "\n"):
            result = self.run_code(OTHER, "drop", "orders", shard, stdin=answer)
            self.assertIn("holder", result.stderr)
            self.assertIn("not dropped", result.stderr)
            self.assertEqual(self.json("get", "orders", shard)["status"], "SHARD_STATUS_SEALED")
        result = self.run_code(OK, "drop", "orders", shard, stdin=shard.upper() + "\n")
        self.assertRegex(result.stdout, r"(?m)^status +DROPPED$")
        self.error(NOT_FOUND, "get", "orders", shard)

    def test_drop_without_a_question(self):
        shard = self.claimed()
        error = self.error(STATE, "drop", "orders", shard, "--yes")
        self.assertEqual(error["reason"], "SHARD_NOT_SEALED")
        self.assertIn("claimctl seal", error["next"])
        self.run_code(OK, "seal", "orders", shard)
        self.assertEqual(self.error(LOST, "drop", "orders", shard, "--yes",
                                    "--expected-epoch=7")["reason"], "EPOCH_MISMATCH")
        tombstone = self.json("drop", "orders", shard, "--yes", "--expected-epoch=1")
        self.assertEqual(tombstone["status"], "SHARD_STATUS_DROPPED")

    def test_init(self):
        shard = fresh_shard()
        for _ in range(2):
            made = self.json("init", "orders", shard, "--spec=4", "--field=bucket=1")
            self.assertEqual((made["version"], made["writerEpoch"], made["shardSpecId"]),
                             ("1", "0", 4))
        self.assertEqual(self.error(REFUSED, "init", "orders", shard, "--spec=5")["reason"],
                         "SHARD_SPEC_MISMATCH")


class ListTest(ClaimctlTest):
    def setUp(self):
        self.table = f"table-{fresh_shard()}"
        self.shards = sorted(fresh_shard() for _ in range(3))
        for spec, shard in enumerate(self.shards):
            self.run_code(OK, "claim", self.table, shard, f"--spec={spec}",
                          f"--claimant=writer-{spec}")
        self.run_code(OK, "seal", self.table, self.shards[2])

    def ids(self, *words):
        return [shard["shardId"] for shard in self.json("list", self.table, *words)["shards"]]

    def test_formats_and_filters(self):
        self.assertEqual(self.ids(), self.shards)
        self.assertEqual([shard["shardId"] for shard in self.json_lines("list", self.table)],
                         self.shards)
        self.assertEqual(self.ids("--status=sealed"), self.shards[2:])
        self.assertEqual(self.ids("--held-by=writer-1"), self.shards[1:2])
        self.assertEqual(self.ids("--spec=0"), self.shards[:1])
        self.assertEqual(self.ids("--limit=2", "--full"), self.shards[:2])
        self.assertEqual(self.ids("--limit=0"), [])
        self.assertEqual(self.json("list", "nothing-here"), {"shards": []})
        self.run_code(OK, "drop", self.table, self.shards[2], "--yes")
        self.assertEqual(self.ids(), self.shards[:2])
        self.assertEqual(self.ids("--status=dropped"), self.shards[2:])

    def test_table_is_aligned(self):
        lines = self.run_code(OK, "list", self.table, "--full").stdout.splitlines()
        self.assertEqual(lines[0].split(),
                         ["SHARD", "STATUS", "SPEC", "EPOCH", "VERSION", "GENERATION", "HELD", "BY",
                          "CLAIMED", "UPDATED", "SSTABLES"])
        column = lines[0].index("HELD BY")
        for line, spec in zip(lines[1:], range(3)):
            self.assertEqual(line[column:column + 8], f"writer-{spec}")

    def test_table_fits_the_terminal(self):
        self.run_code(OK, "claim", self.table, self.shards[0], "--claimant=" + "long-" * 20)
        for columns in (60, 80, 100, 120):
            result = self.run_code(OK, "list", self.table, columns=columns)
            lines = result.stdout.splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            for line, shard in zip(lines[1:], self.shards):
                self.assertTrue(line.startswith(shard), line)
            self.assertIn("…", result.stdout)
        self.assertIn("long-" * 20, self.run_code(OK, "list", self.table).stdout)


class ServerTest(ClaimctlTest):
    def test_health(self):
        self.assertEqual(self.run_code(OK, "health").stdout, "SERVING\n")
        self.assertEqual(self.json("health", "claimd.v1.ShardArbiter"), {"status": "SERVING"})
        self.assertEqual(self.run_code(NOT_FOUND, "health", "nobody").stdout, "SERVICE_UNKNOWN\n")

    def test_info(self):
        info = self.json("info")
        self.assertEqual(info["storeKind"], "rocksdb")
        self.assertRegex(info["storeId"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertEqual(info["limits"]["maxManifestBytes"], str(1 << 20))
        out = self.run_code(OK, "info").stdout
        self.assertRegex(out, rf"(?m)^store id +{info['storeId']}$")
        self.assertRegex(out, r"(?m)^history +64 versions$")

    def test_server_can_be_named_in_several_ways(self):
        for words in (["--server", self.server.address, "info"],
                      ["info", f"--server={self.server.address}"],
                      ["info", f"--server={NOWHERE},{self.server.address}"]):
            self.run_code(OK, *words, server=NOWHERE)

    def test_no_server(self):
        for words in (["info"], ["health"], ["get", "orders", fresh_shard()]):
            result = self.run_code(UNAVAILABLE, *words, "--timeout=1s", server=NOWHERE)
            self.assertIn("claimctl: UNAVAILABLE: ", result.stderr)
            self.assertIn("--server", result.stderr)
            self.assertEqual(result.stdout, "")
        shard = fresh_shard()
        result = self.run_code(UNAVAILABLE, "claim", "orders", shard, "--timeout=1s", "-o", "json",
                               server=NOWHERE)
        self.assertEqual(json.loads(result.stderr)["exitCode"], UNAVAILABLE)

    def test_full_disk_is_no_success(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.run_code(OTHER, "info", stdout=full)


class CommandLineTest(unittest.TestCase):
    def test_wrong_command_lines(self):
        for words in ([], ["nonsense"], ["claim"], ["claim", "t"], ["claim", "t", "s", "x"],
                      ["claim", "t", "s", "--spec"], ["claim", "t", "s", "--spec=x"],
                      ["claim", "t", "s", "--mode=maybe"], ["claim", "t", "s", "--yes"],
                      ["claim", "t", "s", "--fingerprint=abc"], ["claim", "t", "s", "--field=x"],
                      ["claim", "t", "s", "--field=x=hex:0"], ["claim", "t", "s", "--label=x"],
                      ["check", "t", "s", "-1"], ["check", "t", "s", str(2**64)],
                      ["--output=yaml", "info"], ["info", "--timeout=10"], ["--spec=1", "info"],
                      ["list", "t", "--status=gone"], ["completion", "fish"], ["help", "nothing"],
                      ["export-lance", "dir"], ["export-lance", "dir", "a/b"],
                      ["drop", "t", "s", "--yes=1"]):
            result = run_claimctl(*words)
            self.assertEqual(result.returncode, USAGE, (words, result.stderr))
            self.assertRegex(result.stderr, r"(?s)^claimctl: .*Try \"claimctl help[a-z -]*\"\.\n$")
            self.assertEqual(result.stdout, "")

    def test_help(self):
        page = run_claimctl("--help")
        self.assertEqual(page.returncode, OK)
        self.assertEqual(page.stdout, run_claimctl("help").stdout)
        for command in COMMANDS:
            self.assertRegex(page.stdout, rf"(?m)^  {command} +[a-z]")
            own = run_claimctl("help", command)
            self.assertEqual(own.returncode, OK)
            self.assertEqual(own.stdout, run_claimctl(command, "--help").stdout)
            self.assertRegex(own.stdout, r"(?s)usage: claimctl .*Examples:\n.*claimctl ")
        for code in range(11):
            self.assertRegex(page.stdout, rf"(?m)^ +{code}  [a-z]")

    def test_help_fits_a_wide_terminal(self):
        for words in ([], *([command] for command in COMMANDS)):
            for line in run_claimctl("help", *words).stdout.splitlines():
                self.assertLessEqual(len(line), 110, line)

    def test_version(self):
        result = run_claimctl("--version")
        self.assertEqual(result.returncode, OK)
        self.assertRegex(result.stdout, r"^claimctl \d+\.\d+\.\d+\n$")


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = run_claimctl("completion", "bash").stdout

    def complete(self, *words):
        """What bash offers for a command line whose last word is being typed."""
        shown = " ".join(f"'{word}'" for word in ("claimctl", *words))
        script = (f"{self.script}\nCOMP_WORDS=({shown})\nCOMP_CWORD={len(words)}\n_claimctl\n"
                  'printf "%s\\n" "${COMPREPLY[@]}"\n')
        result = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                                check=True)
        return result.stdout.split()

    def test_bash_takes_it(self):
        result = subprocess.run(["bash", "-n"], input=self.script, capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        registered = subprocess.run(
            ["bash", "--norc", "-c", f"source <({BINARY} completion bash) && complete -p claimctl"],
            capture_output=True, text=True, check=True)
        self.assertIn("_claimctl", registered.stdout)

    def test_commands(self):
        self.assertEqual(sorted(self.complete("")), sorted(COMMANDS))
        self.assertEqual(self.complete("cla"), ["claim", "claims"])
        self.assertEqual(self.complete("--server", "a:1", "hi"), ["history"])
        self.assertEqual(self.complete("help", "un"), ["unseal"])
        self.assertEqual(self.complete("completion", ""), ["bash"])

    def test_flags_and_their_values(self):
        self.assertEqual(self.complete("claim", "t", "s", "--sp"), ["--spec="])
        self.assertEqual(self.complete("--out"), ["--output="])
        self.assertNotIn("--yes", self.complete("claim", "--"))
        self.assertIn("--yes", self.complete("drop", "t", "s", "--"))
        self.assertEqual(self.complete("info", "--output", "js"), ["json", "jsonl"])
        self.assertEqual(self.complete("info", "--output", "=", "t"), ["table"])
        self.assertEqual(self.complete("info", "--output", "="), ["table", "json", "jsonl"])
        self.assertEqual(self.complete("claim", "--mode", "="), ["preempt", "if-free"])

    def test_directories(self):
        self.assertIn("/usr", self.complete("import-lance", "/us"))


if __name__ == "__main__":
    unittest.main()
