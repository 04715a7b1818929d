"""setup-docker decides by this probe whether it may install and start an engine."""

import hashlib
import http.server
import json
import os
import pathlib
import socketserver
import tempfile
import threading
import unittest
from unittest import mock

import load

probe_docker = load.script("probe-docker")


class Handler(http.server.BaseHTTPRequestHandler):
    status, body = 200, b'{"Version": "20.10.24"}'

    def do_GET(self):
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


class ProbeCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.environment(DOCKER_CONFIG=directory.name)

    def environment(self, **values):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")}
        patch = mock.patch.dict(os.environ, {**kept, **values}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def context(self, name, host):
        meta = self.directory / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        meta.mkdir(parents=True)
        (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))


class EndpointTest(ProbeCase):
    def test_default_socket(self):
        self.assertEqual(probe_docker.selected_endpoint(), "unix:///var/run/docker.sock")

    def test_current_context(self):
        self.context("work", "tcp://10.0.0.1:2375")
        (self.directory / "config.json").write_text('{"currentContext": "work"}')
        self.assertEqual(probe_docker.selected_endpoint(), "tcp://10.0.0.1:2375")

    def test_docker_context_beats_the_current_one(self):
        self.context("other", "unix:///other.sock")
        (self.directory / "config.json").write_text('{"currentContext": "work"}')
        self.environment(DOCKER_CONFIG=str(self.directory), DOCKER_CONTEXT="other")
        self.assertEqual(probe_docker.selected_endpoint(), "unix:///other.sock")

    def test_docker_host_beats_every_context(self):
        self.environment(DOCKER_CONFIG=str(self.directory), DOCKER_CONTEXT="other", DOCKER_HOST="ssh://box")
        self.assertEqual(probe_docker.selected_endpoint(), "ssh://box")

    def test_broken_config_means_the_default(self):
        (self.directory / "config.json").write_text("{")
        self.assertEqual(probe_docker.selected_endpoint(), "unix:///var/run/docker.sock")

    def test_unknown_context_is_named(self):
        self.environment(DOCKER_CONFIG=str(self.directory), DOCKER_CONTEXT="gone")
        with self.assertRaisesRegex(probe_docker.Unreachable, "gone"):
            probe_docker.selected_endpoint()


class AskTest(ProbeCase):
    def serve(self, **attributes):
        path = str(self.directory / "docker.sock")
        handler = type("Handler", (Handler,), attributes)
        server = socketserver.UnixStreamServer(path, handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.environment(DOCKER_HOST=f"unix://{path}")
        return path

    def test_version(self):
        path = self.serve()
        self.assertEqual(probe_docker.probe(1), (f"unix://{path}", "20.10.24"))
        self.assertTrue(probe_docker.listens(path))

    def test_refusal_is_not_an_answer(self):
        self.serve(status=503)
        with self.assertRaisesRegex(probe_docker.Unreachable, "503"):
            probe_docker.probe(1)

    def test_another_service_is_not_docker(self):
        self.serve(body=b"hello")
        with self.assertRaisesRegex(probe_docker.Unreachable, "does not speak the Docker API"):
            probe_docker.probe(1)

    def test_dead_socket(self):
        path = self.serve()
        self.doCleanups()
        self.environment(DOCKER_HOST=f"unix://{path}")
        with self.assertRaisesRegex(probe_docker.Unreachable, "does not answer"):
            probe_docker.probe(1)
        self.assertFalse(probe_docker.listens(path))

    def test_silent_socket_is_given_up_in_time(self):
        path = str(self.directory / "silent.sock")
        with probe_docker.socket.socket(probe_docker.socket.AF_UNIX) as sock:
            sock.bind(path)
            sock.listen()
            self.environment(DOCKER_HOST=f"unix://{path}")
            with self.assertRaisesRegex(probe_docker.Unreachable, "accepts connections but does not answer"):
                probe_docker.probe(0.2)


if __name__ == "__main__":
    unittest.main()
