import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { causeOf, codeOf, proxyVariables } from '../../lib/http-call.ts';
import { isObject } from '../../lib/json.ts';
import {
  basicAuthorization,
  secretsOfLogin,
  secretsOfPath,
  secretsOfQuery,
} from '../../lib/request-headers.ts';
import { escapeText, redactorOf } from '../../lib/text.ts';
import { ChainError } from './port.ts';

/** Time for a connection with TLS and the handshake of WebSocket, and for each response. */
const RESPONSE_MS = 10_000;
/** A block of Avail has several MiB, and hexadecimal digits double it. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Only responses to calls may be larger. */
const MAX_NOTIFICATION_BYTES = 16 * 1024 * 1024;
export const MAX_PENDING_CALLS = 64;
const MAX_REASON_CHARS = 200;
const METHOD_NOT_FOUND = -32_601;

type Pending = {
  resolve: (result: unknown) => void;
  reject: (error: ChainError) => void;
  cancelTimer: () => void;
};

export type NodeConnection = {
  /** Resolves when calls can be made. If that fails, `onClose` is called instead. */
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
  onNotification: (method: string, params: Record<string, unknown>) => void;
  /** Called once when the connection could not be made, or has ended. Contains no secret. */
  onClose: (reason: string) => void;
};

export function connectToNode({
  url: text,
  clock,
  version,
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
  let nextId = 1;
  let closedBecause: string | undefined;
  const socket = openSocket(url, version);
  const cancelOpening = clock.after(RESPONSE_MS, () =>
    close(`it does not complete the WebSocket handshake within ${RESPONSE_MS / 1_000} s`),
  );
  socket.on('open', () => {
    cancelOpening();
    opened.resolve();
  });
  socket.on('unexpected-response', (_request, { statusCode }) =>
    close(`it responds with HTTP ${statusCode} instead of a WebSocket`),
  );
  socket.on('error', (error) => close(reasonOf(error), isTooLarge(error)));
  socket.on('close', (code, reason) =>
    close(`it closed the connection (${[code, printable(String(reason))].join(' ').trim()})`),
  );
  socket.on('message', receive);

  function close(reason: string, isLarge = false): void {
    if (closedBecause !== undefined) return;
    closedBecause = reason;
    cancelOpening();
    for (const { reject, cancelTimer } of calls.values()) {
      cancelTimer();
      reject(new ChainError(isLarge ? 'too_large' : 'closed', reason));
    }
    calls.clear();
    // Without waiting: a node that does not respond must not keep the connection.
    socket.terminate();
    onClose(reason);
  }

  function receive(data: WebSocket.RawData): void {
    if (closedBecause !== undefined) return;
    const bytes = data as Buffer;
    if (bytes.length > MAX_NOTIFICATION_BYTES && calls.size === 0) {
      close(tooLarge(MAX_NOTIFICATION_BYTES));
      return;
    }
    const message = parsed(bytes.toString());
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
    pending.reject(new ChainError(isUnknown ? 'method_not_found' : 'refused', errorText(error)));
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
        const cancelTimer = clock.after(RESPONSE_MS, () => {
          calls.delete(id);
          const message = `no response to ${method} within ${RESPONSE_MS / 1_000} s`;
          reject(new ChainError('timeout', message));
        });
        calls.set(id, { resolve, reject, cancelTimer });
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      });
    },
    close,
  };
}

/**
 * Returns undefined for invalid JSON. For a block of 32 MiB, parseJson takes four times as long.
 */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Opens a WebSocket through the proxy of the environment, if it has one. */
function openSocket(url: URL, version: string): WebSocket {
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const Agent = url.protocol === 'wss:' ? HttpsAgent : HttpAgent;
  return new WebSocket(address, {
    headers: { 'user-agent': `dawatch/${version}`, ...basicAuthorization(url) },
    maxPayload: MAX_MESSAGE_BYTES,
    // A block of a few KiB could otherwise become gigabytes.
    perMessageDeflate: false,
    ...(proxyVariables().length > 0 && { agent: new Agent({ proxyEnv: process.env }) }),
  });
}

function isTooLarge(error: Error): boolean {
  return codeOf(error) === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
}

function tooLarge(limitBytes: number): string {
  return `it sends a message of more than ${limitBytes / 2 ** 20} MiB`;
}

/** Returns why a connection failed, without an address or a text of the node. */
function reasonOf(error: Error): string {
  if (isTooLarge(error)) return tooLarge(MAX_MESSAGE_BYTES);
  const code = codeOf(error);
  if (code.startsWith('WS_ERR_')) return `it breaks the WebSocket protocol (${code})`;
  if (code.startsWith('HPE_')) return 'the response is not HTTP';
  const { cause, sentence } = causeOf(error);
  return cause === 'other' && code === ''
    ? 'it does not complete the WebSocket handshake'
    : sentence;
}
