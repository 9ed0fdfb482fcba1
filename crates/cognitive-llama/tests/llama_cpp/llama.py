"""llama.cpp through the C functions that the package `xllamacpp` brings: tokens, logits and times.

Its settings are structures that grow from version to version. They are handed over by value in memory, so a buffer that is
longer than any of them does for all; the few fields that are set here lie at the front and are checked against their defaults.
Works on 64-bit x86 Linux, refuses to guess elsewhere.
"""

import ctypes
import platform
import sys
import time

import numpy
import xllamacpp.xllamacpp

LIBRARY = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
# Loading `mmap`-ed files is what llama.cpp does by default, and is left as it is.
CONTEXT = 4096


class Settings(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint32 * 256)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_int32),
        ("tokens", ctypes.POINTER(ctypes.c_int32)),
        ("embedding", ctypes.c_void_p),
        ("positions", ctypes.POINTER(ctypes.c_int32)),
        ("sequence_counts", ctypes.POINTER(ctypes.c_int32)),
        ("sequences", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("wanted", ctypes.POINTER(ctypes.c_int8)),
    ]


def declare(name, result, *arguments):
    function = getattr(LIBRARY, name)
    function.restype, function.argtypes = result, arguments
    return function


POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int32
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
SILENT = LOG(lambda *_: None)

set_log = declare("llama_log_set", None, LOG, POINTER)
model_settings = declare("llama_model_default_params", Settings)
context_settings = declare("llama_context_default_params", Settings)
load_model = declare("llama_model_load_from_file", POINTER, ctypes.c_char_p, Settings)
new_context = declare("llama_init_from_model", POINTER, POINTER, Settings)
free_context = declare("llama_free", None, POINTER)
free_model = declare("llama_model_free", None, POINTER)
set_threads = declare("llama_set_n_threads", None, POINTER, NUMBER, NUMBER)
vocabulary_of = declare("llama_model_get_vocab", POINTER, POINTER)
vocabulary_length = declare("llama_vocab_n_tokens", NUMBER, POINTER)
tokenize = declare(
    "llama_tokenize", NUMBER, POINTER, ctypes.c_char_p, NUMBER, POINTER, NUMBER, ctypes.c_bool, ctypes.c_bool
)
decode = declare("llama_decode", NUMBER, POINTER, Batch)
new_batch = declare("llama_batch_init", Batch, NUMBER, NUMBER, NUMBER)
logits_of = declare("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), POINTER, NUMBER)
memory_of = declare("llama_get_memory", POINTER, POINTER)
clear_memory = declare("llama_memory_clear", None, POINTER, ctypes.c_bool)


class Llama:
    """One model with one context."""

    def __init__(self, path, threads=1):
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise SystemExit("only written for 64-bit x86 Linux")
        set_log(SILENT, None)
        start = time.perf_counter()
        self.model = load_model(str(path).encode(), model_settings())
        self.load_time = time.perf_counter() - start
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        settings = context_settings()
        if (settings.words[0], settings.words[1], settings.words[2]) != (512, 2048, 512):
            raise SystemExit("this version of llama.cpp has other settings at the front")
        settings.words[0] = CONTEXT
        self.context = new_context(self.model, settings)
        self.vocabulary = vocabulary_of(self.model)
        self.length = vocabulary_length(self.vocabulary)
        self.batch = new_batch(CONTEXT, 0, 1)
        self.set_threads(threads)
        self.read = 0

    def set_threads(self, threads):
        set_threads(self.context, threads, threads)

    def encode(self, text):
        """The tokens of a text, none of them made from the name of a control token."""
        raw = text if isinstance(text, bytes) else text.encode()
        room = (NUMBER * (len(raw) + 8))()
        count = tokenize(self.vocabulary, raw, len(raw), room, len(room), False, False)
        return list(room[:count])

    def reset(self):
        clear_memory(memory_of(self.context), True)
        self.read = 0

    def feed(self, tokens, every=False):
        """Reads on; afterwards `row` has the logits of the last token, or of every one."""
        batch = self.batch
        batch.count = len(tokens)
        for at, token in enumerate(tokens):
            batch.tokens[at] = token
            batch.positions[at] = self.read + at
            batch.sequence_counts[at] = 1
            batch.sequences[at][0] = 0
            batch.wanted[at] = 1 if every or at + 1 == len(tokens) else 0
        status = decode(self.context, batch)
        if status != 0:
            raise SystemExit(f"llama_decode: {status}")
        self.read += len(tokens)

    def row(self, at=-1):
        return numpy.ctypeslib.as_array(logits_of(self.context, at), shape=(self.length,)).copy()

    def close(self):
        free_context(self.context)
        free_model(self.model)


def log_probabilities(row):
    """Logits as logarithms of probabilities."""
    row = row.astype(numpy.float64)
    return row - row.max() - numpy.log(numpy.exp(row - row.max()).sum())
