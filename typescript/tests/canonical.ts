// Envelopes and chunks as texts that can be compared byte by byte: without ids and times, members in the order of RFC 8785.

const VARYING = new Set(["trace_id", "latency_ms", "processing_time_ms", "session_id", "expires_at"]);

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name]) => !VARYING.has(name));
  members.sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}

export function canonical(value: unknown): string {
  return JSON.stringify(sorted(value));
}
