import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * A proxy for CONNECT, until the test ends. Every name and address leads to the same port of this
 * machine. `login`: requires Basic authorization.
 */
export async function startConnectProxy({ login }: { login?: string } = {}) {
  /** The targets of all requests, such as example.com:443. */
  const targets: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => response.writeHead(400).end());
  const expected = login && `Basic ${Buffer.from(login).toString('base64')}`;
  server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  server.on('connect', ({ url = '', headers }, incoming: Socket) => {
    targets.push(url);
    if (headers['proxy-authorization'] !== expected) {
      incoming.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    const outgoing = connect(Number(/\d+$/.exec(url)?.[0]), '127.0.0.1', () => {
      incoming.write('HTTP/1.1 200 Connection established\r\n\r\n');
      incoming.pipe(outgoing).pipe(incoming);
    });
    sockets.add(outgoing);
    outgoing.on('error', () => incoming.destroy()).on('close', () => incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://${login ? `${login}@` : ''}127.0.0.1:${port}`, port, targets };
}
