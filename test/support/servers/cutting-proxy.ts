import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * Forwards bytes to a server; every connection can be cut at any time, even within a message.
 * `rewrite` changes the responses, line by line.
 */
export async function startCuttingProxy(target: string, rewrite?: (lines: string) => string) {
  let leadsTo = target;
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((incoming) => {
    connections += 1;
    const { hostname, port } = new URL(leadsTo);
    const outgoing = connect(Number(port), hostname);
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket);
          incoming.destroy();
          outgoing.destroy();
        });
    }
    incoming.pipe(outgoing);
    if (rewrite) forwardLines(outgoing, incoming, rewrite);
    else outgoing.pipe(incoming);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(async () => {
    cut();
    server.close();
    await once(server, 'close');
  });
  /**
   * Like a host that loses its power: open connections carry nothing any more, without being
   * closed. New ones work.
   */
  const silence = () => {
    for (const socket of sockets) {
      socket.unpipe();
      socket.resume();
    }
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    silence,
    /** New connections lead to another server, as after a change of DNS. */
    lead(other: string) {
      leadsTo = other;
    },
    connections: () => connections,
  };
}

/** Holds the rest of a line until its end has arrived. */
function forwardLines(from: Socket, to: Socket, rewrite: (lines: string) => string): void {
  let rest = '';
  from.setEncoding('latin1').on('data', (text: string) => {
    const end = (rest + text).lastIndexOf('\n') + 1;
    const lines = (rest + text).slice(0, end);
    rest = (rest + text).slice(end);
    if (lines !== '') to.write(rewrite(lines), 'latin1');
  });
}
