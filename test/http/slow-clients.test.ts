import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call, post } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { eventually } from '../support/until.ts';

const TIMEOUT_S = 0.3;
const app = useApp({ tuning: { requestTimeoutMs: TIMEOUT_S * 1_000 } });

type Connection = { socket: Socket; received: () => string; isClosed: () => boolean };

/**
 * Opens a raw connection that sends a text, and then bytes at intervals without end. It never
 * closes its side: the server must close its own, after which it resets the connection.
 */
async function openConnection(requestText: string, drip?: string): Promise<Connection> {
  const socket = connect({
    port: Number(new URL(app.url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  let received = '';
  let isClosed = false;
  let dripping: NodeJS.Timeout | undefined;
  const dripOf = (text: string) => {
    clearInterval(dripping);
    dripping = setInterval(() => socket.write(text), 20);
  };
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  socket.on('end', () => dripOf('x'));
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearInterval(dripping);
    isClosed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(requestText);
  if (drip !== undefined) dripOf(drip);
  onTestFinished(() => void socket.destroy());
  return { socket, received: () => received, isClosed: () => isClosed };
}

const closed = (...connections: Connection[]) =>
  eventually(() =>
    expect(
      connections.filter(({ isClosed }) => !isClosed()).map(({ received }) => received()),
    ).toEqual([]),
  );

const HEAD = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;

describe('a connection is closed, with a reason where possible, if its client', () => {
  const CASES: [name: string, text: string, drip: string | undefined, expected: RegExp][] = [
    ['sends nothing', '', undefined, /^(HTTP\/1\.1 408 .*)?$/s],
    [
      'begins a request and stops',
      'GET /livez HTTP/1.1\r\nho',
      undefined,
      /^(HTTP\/1\.1 408 .*)?$/s,
    ],
    ['drips headers', 'GET /livez HTTP/1.1\r\nhost: x\r\n', 'a: b\r\n', /^HTTP\/1\.1 408 /],
    ['stops in a body', `${HEAD}content-length: 1000\r\n\r\n{`, undefined, /^HTTP\/1\.1 408 /],
    ['drips a body', `${HEAD}content-length: 1000000\r\n\r\n{`, ' ', /^HTTP\/1\.1 408 /],
    [
      'drips the body of a request that was refused',
      'POST /v1/submissions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n',
      ' ',
      // A slow machine takes longer than the limit before it reads the request.
      /^HTTP\/1\.1 40[18] /,
    ],
  ];

  it('does not complete a request', async () => {
    const callers = await Promise.all(CASES.map(([, text, drip]) => openConnection(text, drip)));
    await closed(...callers);
    for (const [index, [name, , , expected]] of CASES.entries())
      expect(callers[index]?.received(), name).toMatch(expected);
  });

  it('reads nothing of a large response', async () => {
    const requestText = 'GET /assets/lib/swagger-ui.js HTTP/1.1\r\nhost: x\r\n\r\n';
    const caller = await openConnection(requestText.repeat(16));
    caller.socket.pause();
    await eventually(() => expect(caller.socket.bytesRead).toBeGreaterThan(0));
    const before = sockets();
    await eventually(() => expect(sockets()).toBeLessThan(before));
  });
});

/** The number of open connections of this process, which includes the server. */
const sockets = () =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

it('a slow response does not time out', async () => {
  const path = `/v1/submissions/waited-for/wait?timeout_s=${Math.ceil(TIMEOUT_S * 3)}`;
  // A slow machine takes longer than the limit to send a request.
  await eventually(async () =>
    expect((await post(app.url, { submission_id: 'waited-for' })).status).toBe(202),
  );
  await eventually(async () => expect((await call(app.url, path)).status).toBe(200));
});
