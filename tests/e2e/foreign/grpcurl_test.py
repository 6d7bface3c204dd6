"""What an operator with grpcurl sees, through reflection alone: no proto file is given to it.

Environment as in claimd_server.py; grpcurl is on the PATH (deploy/setup.sh test installs it).
"""

import json
import subprocess
import unittest
import uuid

from claimd_server import Server, TIMEOUT_S

ARBITER = "claimd.v1.ShardArbiter"
SERVICES = [
    ARBITER,
    "claimd.v1.Admin",
    "grpc.channelz.v1.Channelz",
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
]
MESSAGES = [
    "claimd.v1.ClaimEpochRequest",
    "claimd.v1.ClaimEpochResponse",
    "claimd.v1.ShardManifest",
    "google.rpc.Status",
    "google.rpc.ErrorInfo",
    "google.rpc.BadRequest",
    "google.rpc.RetryInfo",
    "google.rpc.PreconditionFailure",
    "grpc.health.v1.HealthCheckResponse",
]
# grpcurl ends with 64 + the code of the status.
INVALID_ARGUMENT = 64 + 3
NOT_FOUND = 64 + 5
FAILED_PRECONDITION = 64 + 9


class GrpcurlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())

    @classmethod
    def grpcurl(cls, *words, flags=()):
        return subprocess.run(
            ["grpcurl", "-plaintext", "-max-time", str(TIMEOUT_S), *flags, cls.server.address,
             *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def answer(self, method, request):
        """Calls a method that must succeed."""
        done = self.grpcurl(method, flags=["-d", json.dumps(request)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refusal(self, method, request, code):
        """Calls a method that must fail with grpcurl's exit code 'code'; answers the error."""
        done = self.grpcurl(method, flags=["-format-error", "-d", json.dumps(request)])
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stderr)

    def shard(self):
        return {"table": "events", "shard_id": str(uuid.uuid4())}

    def test_lists_every_service(self):
        done = self.grpcurl("list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split()), sorted(SERVICES))

    def test_describes_every_service_it_lists(self):
        for service in self.grpcurl("list").stdout.split():
            with self.subTest(service=service):
                done = self.grpcurl("describe", service)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{service} is a service:", done.stdout)

    def test_lists_and_describes_every_method(self):
        for service in SERVICES:
            methods = self.grpcurl("list", service)
            self.assertEqual(methods.returncode, 0, methods.stderr)
            for method in methods.stdout.split():
                with self.subTest(method=method):
                    done = self.grpcurl("describe", method)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("is a method:", done.stdout)

    def test_describes_messages_of_errors_and_health(self):
        for message in MESSAGES:
            with self.subTest(message=message):
                done = self.grpcurl("describe", message)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{message} is a message:", done.stdout)

    def test_prints_a_template_of_a_request(self):
        done = self.grpcurl("describe", "claimd.v1.ClaimEpochRequest", flags=["-msg-template"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"shard_id": ""', done.stdout)

    def test_claim_is_granted(self):
        shard = self.shard()
        answer = self.answer(f"{ARBITER}/ClaimEpoch",
                             {**shard, "shard_spec_id": 1, "claimant": "writer-a",
                              "labels": {"zone": "a"}})
        self.assertEqual(answer["writer_epoch"], "1")
        self.assertIs(answer["created"], True)
        manifest = answer["manifest"]
        self.assertEqual(manifest["shard_id"], shard["shard_id"])
        self.assertEqual(manifest["status"], "SHARD_STATUS_ACTIVE")
        self.assertEqual(manifest["claim"]["claimant"], "writer-a")
        self.assertRegex(manifest["create_time"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
        read = self.answer(f"{ARBITER}/GetManifest", shard)
        self.assertEqual(read["manifest"], manifest)

    def test_refused_claim_has_decoded_details_and_no_effect(self):
        shard = self.shard()
        self.answer(f"{ARBITER}/ClaimEpoch", {**shard, "shard_spec_id": 1})
        before = self.answer(f"{ARBITER}/GetManifest", shard)
        error = self.refusal(f"{ARBITER}/ClaimEpoch", {**shard, "shard_spec_id": 2},
                             INVALID_ARGUMENT)
        self.assertIn(shard["shard_id"], error["message"])
        detail = error["details"][0]
        self.assertEqual(detail["@type"], "type.googleapis.com/google.rpc.ErrorInfo")
        self.assertEqual(detail["reason"], "SHARD_SPEC_MISMATCH")
        self.assertEqual(detail["domain"], "claimd")
        self.assertEqual(detail["metadata"], {**shard, "incoming_shard_spec_id": "2",
                                              "stored_shard_spec_id": "1"})
        self.assertEqual(self.answer(f"{ARBITER}/GetManifest", shard), before)

    def test_human_output_names_the_reason(self):
        shard = self.shard()
        done = self.grpcurl(f"{ARBITER}/GetManifest", flags=["-d", json.dumps(shard)])
        self.assertEqual(done.returncode, NOT_FOUND)
        self.assertIn("SHARD_NOT_FOUND", done.stderr)
        self.assertIn(shard["shard_id"], done.stderr)

    def test_all_bad_fields_are_told_at_once(self):
        error = self.refusal(f"{ARBITER}/ClaimEpoch", {"table": "", "shard_id": "7"},
                             INVALID_ARGUMENT)
        bad, = [detail for detail in error["details"]
                if detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"]
        self.assertEqual({violation["field"] for violation in bad["field_violations"]},
                         {"table", "shard_id"})

    def test_fenced_writer_learns_who_fenced_it(self):
        shard = self.shard()
        for claimant in ("writer-a", "writer-b"):
            self.answer(f"{ARBITER}/ClaimEpoch", {**shard, "claimant": claimant})
        error = self.refusal(f"{ARBITER}/CheckFence", {**shard, "writer_epoch": 1},
                             FAILED_PRECONDITION)
        info = error["details"][0]
        self.assertEqual(info["reason"], "WRITER_FENCED")
        self.assertEqual(info["metadata"], {**shard, "writer_epoch": "1",
                                            "stored_writer_epoch": "2", "claimant": "writer-b"})

    def test_health_of_the_server_and_of_each_service(self):
        for service in ("", ARBITER, "claimd.v1.Admin"):
            with self.subTest(service=service):
                answer = self.answer("grpc.health.v1.Health/Check", {"service": service})
                self.assertEqual(answer, {"status": "SERVING"})
        self.refusal("grpc.health.v1.Health/Check", {"service": "no.such.Service"}, NOT_FOUND)

    def test_channelz_shows_the_server(self):
        answer = self.answer("grpc.channelz.v1.Channelz/GetServers", {})
        self.assertEqual(len(answer["server"]), 1)


if __name__ == "__main__":
    unittest.main()
