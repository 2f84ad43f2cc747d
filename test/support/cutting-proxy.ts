import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Passes bytes on to a server; every connection can be cut at will, in the middle of whatever it carries. */
export async function startCuttingProxy(target: string) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((incoming) => {
    connections += 1;
    const { hostname, port } = new URL(target);
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
    incoming.pipe(outgoing).pipe(incoming);
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
  /** As when a host loses its power: what is open carries nothing any more, and nobody says so. New ones work. */
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
    connections: () => connections,
  };
}
