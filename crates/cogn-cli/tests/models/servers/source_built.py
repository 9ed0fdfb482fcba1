"""Serves a model file with the server of the package `llama-cpp-python`, which is built from source.

Usage: source_built.py MODEL. Prints `listening on http://HOST:PORT` once it answers, and ends when its input is closed.
"""

import os
import socket
import sys
import threading

import uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings

# Several threads wait for each other without sleeping, which takes for ever where other work runs beside them.
model = ModelSettings(
    model=sys.argv[1], model_alias="small", n_ctx=1024, n_threads=1, n_threads_batch=1, verbose=False
)
app = create_app(server_settings=ServerSettings(), model_settings=[model])
# Connections wait in this socket from now on, so no request comes too early.
listener = socket.create_server(("127.0.0.1", 0))
host, port = listener.getsockname()


def end_with_the_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_the_input, daemon=True).start()
print(f"listening on http://{host}:{port}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
