// Sends HTTP requests with little CPU, one after the other on each connection, so that the server
// is the limit.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export type Load = {
  url: string;
  apiKey: string;
  connections: number;
  seconds: number;
  /** POST /v1/submissions with a new id each, or GET of a random id of a file (a JSON array). */
  send: 'new ids' | { idsIn: string };
};
export type LoadResult = { perSecond: number; requests: number };

/** The end of a body in chunks; bodies of JSON do not contain it. */
const LAST_CHUNK = '\r\n0\r\n\r\n';

const [load] = JSON.parse(process.argv[2] ?? '[]') as [Load];
const { hostname, port } = new URL(load.url);
const nextRequest = load.send === 'new ids' ? postOf() : getOf(load.send.idsIn);
let completed = 0;

const startedAt = performance.now();
const endsAt = startedAt + load.seconds * 1_000;
await Promise.all(Array.from({ length: load.connections }, sendOnOne));
const perSecond = (completed * 1_000) / (performance.now() - startedAt);
console.log(JSON.stringify({ perSecond, requests: completed } satisfies LoadResult));

function postOf(): () => string {
  const head = `POST /v1/submissions HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${load.apiKey}\r\ncontent-type: application/json\r\n`;
  const body = () => `{"submission_id":"${randomUUID()}"}`;
  const start = `${head}content-length: ${body().length}\r\n\r\n`;
  return () => start + body();
}

function getOf(file: string): () => string {
  const ids = JSON.parse(readFileSync(file, 'utf8')) as string[];
  const rest = ` HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${load.apiKey}\r\n\r\n`;
  return () => `GET /v1/submissions/${ids[Math.floor(Math.random() * ids.length)]}${rest}`;
}

/** Resolves when nothing is left to send; rejects on a response other than 2xx. */
function sendOnOne(): Promise<void> {
  return new Promise((resolve, reject) => {
    /**
     * Takes the next bytes of a response. Returns whether it is complete. Undefined: none has
     * begun.
     */
    let endsWith: ((chunk: Buffer) => boolean) | undefined;
    const send = () => {
      if (performance.now() >= endsAt) {
        socket.end();
        resolve();
        return;
      }
      socket.write(nextRequest(), 'latin1');
    };
    const take = (size: number, buffer: Uint8Array): boolean => {
      const chunk = Buffer.from(buffer.buffer, buffer.byteOffset, size);
      endsWith ??= responseOf(chunk);
      if (endsWith(chunk)) {
        endsWith = undefined;
        completed += 1;
        send();
      }
      return true;
    };
    const onread = { buffer: Buffer.alloc(64 * 1_024), callback: take };
    const socket: Socket = connect(
      { host: hostname, port: Number(port), noDelay: true, onread },
      send,
    );
    socket.once('error', reject);
  });
}

/**
 * Returns a function that is called with each chunk of a response, whose head is completely in the
 * first one.
 */
function responseOf(first: Buffer): (chunk: Buffer) => boolean {
  const head = first.toString('latin1', 0, 2_048);
  const end = head.indexOf('\r\n\r\n');
  const status = head.charCodeAt(9);
  const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(head);
  const length = head.indexOf('content-length: ');
  if (status !== 50 /* 2xx */ || end === -1 || (length === -1 && !isChunked))
    throw new Error(`unexpected response: ${head}`);
  if (isChunked) {
    let tail = '';
    return (chunk) => {
      tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - LAST_CHUNK.length))).slice(
        -LAST_CHUNK.length,
      );
      return tail === LAST_CHUNK;
    };
  }
  let left = end + 4 + Number.parseInt(head.slice(length + 16, length + 26), 10);
  return (chunk) => {
    left -= chunk.length;
    return left === 0;
  };
}
