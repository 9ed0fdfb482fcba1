// A proxy on this machine that cuts connections: what comes back on each passes up to so many bytes, then the connection is closed.
import net from "node:net";

/** The position of the answer with the stream; a browser sends a preflight request before it. */
const STREAM = /text\/event-stream|application\/x-ndjson|101 Switching/;

/**
 * `limit(number)` says how many bytes pass on a connection, the first of which is 0. With `begins` they are counted from where that is first
 * seen.
 */
export async function proxy(target, limit, begins = /^/) {
  const { hostname, port } = new URL(target);
  const sockets = new Set();
  const seen = { connections: 0, bytes: 0 };
  const server = net.createServer((client) => {
    const most = limit(seen.connections++);
    let [left, head] = [Infinity, ""];
    const upstream = net.connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (data) => upstream.write(data));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    upstream.on("data", (data) => {
      if (left === Infinity) {
        head += data.toString("latin1");
        const found = begins.exec(head);
        // Bytes that have passed since then count as well.
        if (found !== null) left = most + data.length - (head.length - found.index);
      }
      const passed = data.subarray(0, Math.max(left, 0));
      left -= passed.length;
      seen.bytes += passed.length;
      if (left > 0) return client.write(passed);
      upstream.destroy();
      client.write(passed, () => client.destroy());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    seen,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** One proxy for each transport. The first connection is cut soon after the stream has begun, each further one later. */
export async function cutProxies({ base, cutAfter }) {
  const limit = (connection) => cutAfter * (connection + 1);
  const of = async (transport) => [transport, (await proxy(base, limit, STREAM)).url];
  return Object.fromEntries(await Promise.all(["sse", "ndjson", "websocket"].map(of)));
}
