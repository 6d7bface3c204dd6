"""What a writer in Python sees: Debian's grpcio, stubs made from the protos by Debian's protoc.

Environment as in claimd_server.py.
"""

import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid

import grpc

from claimd_server import SOURCE_DIR, Server, TIMEOUT_S

STUBS = pathlib.Path(tempfile.mkdtemp())
unittest.addModuleCleanup(shutil.rmtree, STUBS, ignore_errors=True)


def make_stubs():
    protos = SOURCE_DIR / "proto"
    subprocess.run(
        ["protoc", f"-I{protos}", "-I/usr/share/grpc-proto", f"--python_out={STUBS}",
         f"--grpc_python_out={STUBS}",
         f"--plugin=protoc-gen-grpc_python={shutil.which('grpc_python_plugin')}",
         "claimd/v1/manifest.proto", "claimd/v1/shard_arbiter.proto", "google/rpc/status.proto",
         "google/rpc/error_details.proto", "grpc/health/v1/health.proto"], check=True)
    sys.path.insert(0, str(STUBS))
    # The health stubs lie in a folder of the same name as grpcio's package.
    grpc.__path__.append(str(STUBS / "grpc"))


make_stubs()
# pylint: disable=wrong-import-position
from claimd.v1 import shard_arbiter_pb2 as arbiter_pb2
from claimd.v1 import shard_arbiter_pb2_grpc as arbiter_grpc
from google.rpc import error_details_pb2, status_pb2
from grpc.health.v1 import health_pb2, health_pb2_grpc


def rich_status(error):
    """The google.rpc.Status that travels beside a gRPC error."""
    trailers = dict(error.trailing_metadata())
    status = status_pb2.Status()
    status.ParseFromString(trailers["grpc-status-details-bin"])
    return status


def error_info(error):
    info = error_details_pb2.ErrorInfo()
    for detail in rich_status(error).details:
        if detail.Unpack(info):
            return info
    raise AssertionError(f"no ErrorInfo in {error}")


class PythonTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server())
        channel = self.enterContext(grpc.insecure_channel(self.server.address))
        self.arbiter = arbiter_grpc.ShardArbiterStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)
        self.shard = {"table": "events", "shard_id": str(uuid.uuid4())}

    def claim(self, **fields):
        return self.arbiter.ClaimEpoch(arbiter_pb2.ClaimEpochRequest(**self.shard, **fields),
                                       timeout=TIMEOUT_S)

    def test_claims_commits_and_releases(self):
        granted = self.claim(shard_spec_id=1, claimant="python", request_id="claim-1")
        self.assertEqual(granted.writer_epoch, 1)
        self.assertTrue(granted.created)
        manifest = granted.manifest
        manifest.version += 1
        manifest.current_generation = 2
        manifest.sstables.add(generation=1, path="gen-1", physical_rows=0)
        committed = self.arbiter.CommitManifest(
            arbiter_pb2.CommitManifestRequest(**self.shard, writer_epoch=1, manifest=manifest),
            timeout=TIMEOUT_S).manifest
        self.assertEqual(committed.version, 2)
        # A counter that is zero is not a counter that is absent.
        self.assertTrue(committed.sstables[0].HasField("physical_rows"))
        self.assertFalse(committed.sstables[0].HasField("in_memory_bytes"))
        released = self.arbiter.ReleaseEpoch(
            arbiter_pb2.ReleaseEpochRequest(**self.shard, writer_epoch=1), timeout=TIMEOUT_S)
        self.assertFalse(released.manifest.HasField("claim"))

    def test_repeated_request_is_the_same_claim(self):
        first = self.claim(claimant="python", request_id="claim-1")
        again = self.claim(claimant="python", request_id="claim-1")
        self.assertEqual(again.writer_epoch, first.writer_epoch)
        self.assertEqual(again.manifest.version, first.manifest.version)

    def test_refused_claim_explains_itself_in_the_trailer(self):
        self.claim(shard_spec_id=1)
        with self.assertRaises(grpc.RpcError) as caught:
            self.claim(shard_spec_id=0)
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        status = rich_status(error)
        self.assertEqual(status.code, grpc.StatusCode.INVALID_ARGUMENT.value[0])
        self.assertEqual(status.message, error.details())
        info = error_info(error)
        self.assertEqual(info.reason, "SHARD_SPEC_MISMATCH")
        self.assertEqual(info.domain, "claimd")
        self.assertEqual(dict(info.metadata), {**self.shard, "incoming_shard_spec_id": "0",
                                               "stored_shard_spec_id": "1"})

    def test_health_check_and_unknown_service(self):
        answer = self.health.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        with self.assertRaises(grpc.RpcError) as caught:
            self.health.Check(health_pb2.HealthCheckRequest(service="no.such.Service"),
                              timeout=TIMEOUT_S)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_health_watch_tells_of_the_drain(self):
        watch = self.health.Watch(
            health_pb2.HealthCheckRequest(service="claimd.v1.ShardArbiter"), timeout=TIMEOUT_S)
        seen = queue.Queue()

        def read():
            try:
                for answer in watch:
                    seen.put(answer.status)
            except grpc.RpcError as error:
                seen.put(error.code())

        reader = threading.Thread(target=read)
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(watch.cancel)
        self.assertEqual(seen.get(timeout=TIMEOUT_S), health_pb2.HealthCheckResponse.SERVING)
        self.assertEqual(self.server.stop(), 0, self.server.log())
        self.assertEqual(seen.get(timeout=TIMEOUT_S), health_pb2.HealthCheckResponse.NOT_SERVING)

    def test_health_watch_of_an_unknown_service_says_so(self):
        watch = self.health.Watch(health_pb2.HealthCheckRequest(service="no.such.Service"),
                                  timeout=TIMEOUT_S)
        self.addCleanup(watch.cancel)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


if __name__ == "__main__":
    unittest.main()
