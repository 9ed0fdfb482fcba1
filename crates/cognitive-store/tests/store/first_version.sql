-- A file as the first version of this program left it, with one record.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    ts TEXT NOT NULL,
    event TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    module TEXT NOT NULL,
    version TEXT NOT NULL,
    ok INTEGER NOT NULL CHECK (ok IN (0, 1)),
    code TEXT,
    model TEXT NOT NULL,
    confidence REAL NOT NULL,
    risk TEXT NOT NULL,
    latency_ms REAL NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    receipt TEXT NOT NULL,
    payload TEXT
) STRICT;
CREATE INDEX audit_trace_id ON audit (trace_id);
INSERT INTO audit VALUES (7, 0, 100, '2026-01-01T00:00:00.000Z', 'run', 'old', 'm', '1', 1, NULL, '', 0.5, 'low', 1.0,
    NULL, NULL, 'null', NULL);
PRAGMA application_id = 0x636f676e;
PRAGMA user_version = 1;
