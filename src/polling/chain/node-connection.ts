import { Agent, buildConnector, type Dispatcher, WebSocket } from 'undici';
import { basicAuthorization, secretsOfLogin, secretsOfQuery } from '../../lib/basic-auth.ts';
import type { Clock } from '../../lib/clock.ts';
import { causeOf, codeOf } from '../../lib/connection-error.ts';
import { isObject, parseJson } from '../../lib/json.ts';
import { throughProxy } from '../../lib/outgoing-proxy.ts';
import { escapeText, redactorOf } from '../../lib/text.ts';
import { ChainError } from './port.ts';

/** Time for a connection with TLS and the handshake of the WebSocket, and for each response. */
export const RESPONSE_MS = 10_000;
/** A block of Avail has several MiB, and hexadecimal digits double it. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Only responses to calls may be larger. */
export const MAX_NOTIFICATION_BYTES = 16 * 1024 * 1024;
export const MAX_PENDING_CALLS = 64;
const MAX_REASON_CHARS = 200;
const METHOD_NOT_FOUND = -32_601;
/** Code with which WebSocket closes a connection because of a message that is too large. */
const TOO_LARGE = 1009;

type Pending = {
  resolve: (result: unknown) => void;
  reject: (error: ChainError) => void;
  cancelTimer: () => void;
};

export type NodeConnection = {
  /** Resolves when calls can be made. If it fails, `onClose` is called instead. */
  opened: Promise<void>;
  /** Rejects with ChainError. */
  call(method: string, params: unknown[]): Promise<unknown>;
  /** Closes at once, with the reason for `onClose` and the pending calls. */
  close(reason: string): void;
};

type ConnectionDeps = {
  url: string;
  clock: Clock;
  onNotification: (method: string, params: Record<string, unknown>) => void;
  /** Called once when the connection could not be made, or has ended. Contains no secret. */
  onClose: (reason: string) => void;
};

/** Connects to a node: JSON-RPC 2.0 over WebSocket. */
export function connectToNode({
  url: text,
  clock,
  onNotification,
  onClose,
}: ConnectionDeps): NodeConnection {
  const url = new URL(text);
  const redact = redactorOf([...secretsOfLogin(url), ...secretsOfQuery(url)]);
  const printable = (message: string) => escapeText(redact(message), MAX_REASON_CHARS);
  const headers = basicAuthorization(url);
  url.username = '';
  url.password = '';
  const calls = new Map<number, Pending>();
  const opened = Promise.withResolvers<void>();
  let nextId = 1;
  let isOpen = false;
  let closedBecause: string | undefined;
  const transport = openTransport();
  const { agent } = transport;
  const socket = new WebSocket(url, { dispatcher: transport.dispatcher, headers });
  socket.binaryType = 'arraybuffer';
  const cancelOpening = clock.after(RESPONSE_MS, () =>
    close(`it does not complete the WebSocket handshake within ${RESPONSE_MS / 1_000} s`),
  );
  socket.addEventListener('open', () => {
    if (closedBecause !== undefined) return;
    isOpen = true;
    cancelOpening();
    opened.resolve();
  });
  socket.addEventListener('error', () => {
    if (!isOpen) close(transport.failure());
  });
  socket.addEventListener('close', ({ code, reason }) =>
    close(isOpen ? closeReason(code, printable(reason)) : transport.failure()),
  );
  socket.addEventListener('message', ({ data }) => receive(data));

  function close(reason: string): void {
    if (closedBecause !== undefined) return;
    closedBecause = reason;
    cancelOpening();
    const isTooLarge = reason.startsWith(TOO_LARGE_REASON);
    for (const { reject, cancelTimer } of calls.values()) {
      cancelTimer();
      reject(new ChainError(isTooLarge ? 'too_large' : 'closed', reason));
    }
    calls.clear();
    if (socket.readyState !== WebSocket.CLOSED) socket.close();
    // A peer that does not answer must not keep the connection.
    transport.destroy();
    void agent.destroy();
    onClose(reason);
  }

  function receive(data: unknown): void {
    if (closedBecause !== undefined) return;
    if (typeof data === 'string' && data.length > MAX_NOTIFICATION_BYTES && calls.size === 0) {
      close(`${TOO_LARGE_REASON} ${MAX_NOTIFICATION_BYTES / 2 ** 20} MiB`);
      return;
    }
    const message = typeof data === 'string' ? parseJson(data) : undefined;
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
    // The call has timed out.
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
    const text = typeof message === 'string' ? message : 'an error without a message';
    return printable(typeof code === 'number' ? `${text} (${code})` : text);
  }

  return {
    opened: opened.promise,
    call(method, params) {
      if (closedBecause !== undefined)
        return Promise.reject(new ChainError('closed', closedBecause));
      if (!isOpen)
        return Promise.reject(new ChainError('not_connected', 'it is not connected yet'));
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

const TOO_LARGE_REASON = 'it sends a message of more than';

function closeReason(code: number, reason: string): string {
  if (code === TOO_LARGE) return `${TOO_LARGE_REASON} ${MAX_MESSAGE_BYTES / 2 ** 20} MiB`;
  return `it closed the connection (code ${code}${reason === '' ? '' : `: ${reason}`})`;
}

/**
 * Returns connections of one WebSocket, which its events do not describe: `failure` returns why
 * there is none, and `destroy` closes it without waiting for the peer.
 */
function openTransport() {
  let socket: { destroy(): void } | undefined;
  let isDestroyed = false;
  let error: unknown;
  let httpStatus: number | undefined;
  const abort = new AbortController();
  const connect = throughProxy(buildConnector({ timeout: RESPONSE_MS, allowH2: false }), {
    timeoutMs: RESPONSE_MS,
    signal: abort.signal,
  });
  const agent = new Agent({
    connect(target, callback) {
      connect(target, (...result) => {
        [error] = result;
        socket = result[1] ?? undefined;
        if (isDestroyed) socket?.destroy();
        callback(...(result as Parameters<typeof callback>));
      });
    },
    webSocket: { maxPayloadSize: MAX_MESSAGE_BYTES },
    headersTimeout: RESPONSE_MS,
  });
  const dispatcher = agent.compose((dispatch) => (options, handler) => {
    const watched: Dispatcher.DispatchHandler = Object.create(handler, {
      onResponseStart: {
        value(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>) {
          httpStatus = args[1];
          return handler.onResponseStart?.(...args);
        },
      },
      onResponseError: {
        value(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseError']>>) {
          error ??= args[1];
          return handler.onResponseError?.(...args);
        },
      },
    });
    return dispatch(options, watched);
  });
  return {
    agent,
    dispatcher,
    failure(): string {
      if (httpStatus !== undefined)
        return `it responds with HTTP ${httpStatus} instead of a WebSocket`;
      if (!error) return 'it does not complete the WebSocket handshake';
      const { cause, sentence } = causeOf(error);
      if (cause !== 'other') return sentence;
      return codeOf(error) === 'UND_ERR_HEADERS_TIMEOUT' ? 'the handshake timed out' : sentence;
    },
    destroy() {
      isDestroyed = true;
      abort.abort();
      socket?.destroy();
    },
  };
}
