import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { codeOf, proxyVariables, sentenceOf } from '../../lib/http-call.ts';
import { isObject } from '../../lib/json.ts';
import {
  basicAuthorization,
  secretsOfLogin,
  secretsOfPath,
  secretsOfQuery,
} from '../../lib/request-headers.ts';
import { escapeText, redactorOf } from '../../lib/text.ts';
import { parseBlockMessage } from './block-message.ts';
import { deadline } from './deadline.ts';
import { ChainError, type ChainErrorReason } from './port.ts';

/** Time for a connection with TLS and the handshake of WebSocket, and for each response. */
const RESPONSE_MS = 10_000;
/** A head has some kB: 90 with the commitments of a full block, 350 with those of the largest. */
const MAX_MESSAGE_BYTES = 512 * 1024;
/** A block of Avail has up to 4 MiB of data, and hexadecimal digits double it. */
const MAX_BLOCK_BYTES = 16 * 1024 * 1024;
/** A node announces a block in some seconds, and up to a hundred at once after a stall. */
const MAX_BYTES_PER_S = 16 * 1024 * 1024;
/** A small message counts as so many bytes, because it costs as much time. */
const LEAST_BYTES = 32 * 1024;
export const MAX_PENDING_CALLS = 64;
const MAX_REASON_CHARS = 200;
const METHOD_NOT_FOUND = -32_601;

type Pending = {
  method: string;
  resolve: (result: unknown) => void;
  reject: (error: ChainError) => void;
  cancelTimer: () => void;
};

export type NodeConnection = {
  /** Resolves when calls can be made. Rejects with ChainError if that fails. */
  opened: Promise<void>;
  call(method: string, params: unknown[]): Promise<unknown>;
  /** Closes at once, with the reason for `onClose` and the pending calls. */
  close(reason: string): void;
};

type ConnectionDeps = {
  url: string;
  clock: Clock;
  /** The version of dawatch, for `user-agent`: firewalls refuse requests without one. */
  version: string;
  /** For the response with one block, which may be large; its extrinsics are a Buffer with JSON. */
  isForBlock?: boolean;
  onNotification: (method: string, params: Record<string, unknown>) => void;
  /** Called once when the connection could not be made, or has ended. Contains no secret. */
  onClose: (reason: string) => void;
};

export function connectToNode({
  url: text,
  clock,
  version,
  isForBlock = false,
  onNotification,
  onClose,
}: ConnectionDeps): NodeConnection {
  const url = new URL(text);
  const redact = redactorOf([
    ...secretsOfLogin(url),
    ...secretsOfQuery(url),
    ...secretsOfPath(url),
  ]);
  const printable = (message: string) => escapeText(redact(message), MAX_REASON_CHARS);
  const calls = new Map<number, Pending>();
  const opened = Promise.withResolvers<void>();
  opened.promise.catch(() => undefined);
  let nextId = 1;
  let closedBecause: string | undefined;
  let received = { second: 0, bytes: 0 };
  const maxBytes = isForBlock ? MAX_BLOCK_BYTES : MAX_MESSAGE_BYTES;
  const socket = openSocket(url, version, maxBytes);
  const cancelOpening = deadline(clock, RESPONSE_MS, () =>
    close(`it does not complete the WebSocket handshake within ${RESPONSE_MS / 1_000} s`),
  );
  socket.on('open', () => {
    cancelOpening();
    opened.resolve();
  });
  socket.on('unexpected-response', (_request, { statusCode }) =>
    close(`it responds with HTTP ${statusCode} instead of a WebSocket`),
  );
  socket.on('error', (error) => {
    if (codeOf(error) === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH')
      close(`it sends a message of more than ${maxBytes / 1_024} KiB`, 'too_large');
    else close(reasonOf(error));
  });
  socket.on('close', (code, reason) =>
    close(`it closed the connection (${[code, printable(String(reason))].join(' ').trim()})`),
  );
  socket.on('ping', count);
  socket.on('message', (data) => {
    count(data as Buffer);
    if (closedBecause === undefined) receive(data as Buffer);
  });

  function close(reason: string, errorReason: ChainErrorReason = 'closed'): void {
    if (closedBecause !== undefined) return;
    closedBecause = reason;
    cancelOpening();
    for (const { reject, cancelTimer } of calls.values()) {
      cancelTimer();
      reject(new ChainError(errorReason, reason));
    }
    calls.clear();
    opened.reject(new ChainError(errorReason, reason));
    // Without waiting: a node that does not respond must not keep the connection.
    socket.terminate();
    onClose(reason);
  }

  /** Closes the connection to a node that floods it. */
  function count({ length }: Buffer): void {
    const second = Math.floor(clock.now() / 1_000);
    const before = second === received.second ? received.bytes : 0;
    received = { second, bytes: before + Math.max(LEAST_BYTES, length) };
    if (!isForBlock && received.bytes > MAX_BYTES_PER_S)
      close('it sends too many messages within a second');
  }

  function receive(bytes: Buffer): void {
    const message = parsed(bytes, isForBlock);
    if (!isObject(message)) {
      close('it sends messages that are not JSON-RPC');
      return;
    }
    const { id, method, params } = message;
    if (typeof method === 'string') {
      if (isObject(params)) onNotification(method, params);
    } else if (typeof id === 'number') settle(id, message);
    // An error without an id belongs to no call, such as the notice of a limit.
    else if (isObject(message.error)) close(`it reports: ${errorText(message.error)}`);
  }

  function settle(id: number, { error, result }: Record<string, unknown>): void {
    const pending = calls.get(id);
    if (!pending) return;
    calls.delete(id);
    pending.cancelTimer();
    if (error === undefined || error === null) {
      pending.resolve(result ?? null);
      return;
    }
    const isUnknown = isObject(error) && error.code === METHOD_NOT_FOUND;
    pending.reject(
      isUnknown
        ? new ChainError('method_not_found', `it does not offer ${pending.method}`)
        : new ChainError('refused', errorText(error)),
    );
  }

  function errorText(error: unknown): string {
    const { code, message } = isObject(error) ? error : {};
    const described = typeof message === 'string' ? message : 'an error without a message';
    return printable(typeof code === 'number' ? `${described} (${code})` : described);
  }

  return {
    opened: opened.promise,
    call(method, params) {
      if (closedBecause !== undefined)
        return Promise.reject(new ChainError('closed', closedBecause));
      if (socket.readyState !== WebSocket.OPEN)
        return Promise.reject(new ChainError('not_connected', 'it is not connected'));
      if (calls.size >= MAX_PENDING_CALLS)
        return Promise.reject(
          new ChainError('busy', `${MAX_PENDING_CALLS} calls wait for a response`),
        );
      const id = nextId++;
      return new Promise((resolve, reject) => {
        const cancelTimer = deadline(clock, RESPONSE_MS, () => {
          calls.delete(id);
          const message = `no response to ${method} within ${RESPONSE_MS / 1_000} s`;
          reject(new ChainError('timeout', message));
        });
        calls.set(id, { method, resolve, reject, cancelTimer });
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      });
    },
    close,
  };
}

/** Returns undefined for invalid JSON. */
function parsed(bytes: Buffer, isForBlock: boolean): unknown {
  try {
    return isForBlock ? parseBlockMessage(bytes, MAX_MESSAGE_BYTES) : JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

/** Opens a WebSocket through the proxy of the environment, if it has one. */
function openSocket(url: URL, version: string, maxBytes: number): WebSocket {
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const Agent = url.protocol === 'wss:' ? HttpsAgent : HttpAgent;
  return new WebSocket(address, {
    headers: { 'user-agent': `dawatch/${version}`, ...basicAuthorization(url) },
    maxPayload: maxBytes,
    // Other work runs between two messages, so that a flood does not hold it up.
    allowSynchronousEvents: false,
    // A block of a few KiB could otherwise become gigabytes.
    perMessageDeflate: false,
    ...(proxyVariables().length > 0 && { agent: new Agent({ proxyEnv: process.env }) }),
  });
}

/** Returns why a connection failed, without an address or a text of the node. */
function reasonOf(error: Error): string {
  const code = codeOf(error);
  if (code.startsWith('WS_ERR_')) return `it breaks the WebSocket protocol (${code})`;
  if (code.startsWith('HPE_')) return 'the response is not HTTP';
  return code === '' ? 'it does not complete the WebSocket handshake' : sentenceOf(error);
}
