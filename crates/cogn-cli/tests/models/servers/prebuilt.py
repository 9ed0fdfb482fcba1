"""Serves a model file with the prebuilt llama-server inside the package `xllamacpp`.

Usage: prebuilt.py MODEL. Prints `listening on http://HOST:PORT` once it answers, and ends when its input is closed.
"""

import os
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"small"}
params.hostnames = ["127.0.0.1"]
# The system chooses; what it chose is printed below.
params.port = 0
params.n_ctx = 1024
params.n_parallel = 1
params.offline = True
# Several threads wait for each other without sleeping, which takes for ever where other work runs beside them.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.ui = False
server = xllamacpp.Server(params)
print(f"listening on {server.listening_address}", flush=True)
sys.stdin.read()
# The threads of the server are not worth waiting for.
os._exit(0)
