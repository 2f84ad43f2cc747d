import type { Socket } from 'node:net';
import { Agent, type buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { causeOf } from './connection-error.ts';

/** Requests notice a change of DNS after this time at most, also while others keep arriving. */
const MAX_AGE_MS = 15_000;

type Connecting = { connect: buildConnector.connector };

/** Connections to one origin. They are replaced after 15 s, except by `clientTtl: null`. */
export function outgoingPool(origin: string | URL, options: Pool.Options & Connecting): Pool {
  return new Pool(origin, {
    clientTtl: MAX_AGE_MS,
    ...options,
    factory: (url, common) => new OutgoingClient(url, common as Client.Options & Connecting),
  });
}

/** The same for any number of origins. */
export function outgoingAgent(options: Agent.Options & Connecting): Agent {
  const factory = (origin: string | URL, common: object) =>
    outgoingPool(origin, common as Pool.Options & Connecting);
  return new Agent({ ...options, factory });
}

const CONTINUE = Buffer.from('HTTP/1.1 100');
const END_OF_HEAD = '\r\n\r\n';
const MAX_HEAD_BYTES = 16_384;

/**
 * One connection at a time. If the server closes a reused one before the first byte of a response,
 * the request is sent once more on a new one, unless this could repeat an effect (`idempotent`;
 * default: only GET may be repeated). Skips a `100 Continue`, which undici takes for an error.
 */
class OutgoingClient extends Client {
  /** Complete responses on the open connection. */
  #responses = 0;
  /** Whether a request is sent and no byte of its final response has arrived. */
  #isWaiting = false;

  constructor(origin: URL, { connect, ...options }: Client.Options & Connecting) {
    super(origin, {
      ...options,
      connect: (target, callback) =>
        connect(target, (...result) => {
          if (result[1]) this.#use(result[1]);
          callback(...result);
        }),
    });
  }

  #use(socket: Socket): void {
    this.#responses = 0;
    const isHttp2 = 'alpnProtocol' in socket && socket.alpnProtocol === 'h2';
    if (!isHttp2) this.#skipContinue(socket);
  }

  /** Reads before undici does, and returns to it what follows a `100 Continue`. */
  #skipContinue(socket: Socket): void {
    let held: Buffer = Buffer.alloc(0);
    socket.on('readable', () => {
      const chunk: Buffer | null = this.#isWaiting ? socket.read() : null;
      if (chunk === null) return;
      held = afterContinue(held.length === 0 ? chunk : Buffer.concat([held, chunk]));
      if (mayBeContinue(held)) return;
      this.#isWaiting = false;
      socket.unshift(held);
      held = Buffer.alloc(0);
    });
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    let mayRepeat = options.idempotent ?? options.method === 'GET';
    let isReused = false;
    const observed: Dispatcher.DispatchHandler = {
      onRequestStart: (controller, context) => {
        isReused = this.#responses > 0;
        this.#isWaiting = true;
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart: (...response) => {
        mayRepeat = false;
        handler.onResponseStart?.(...response);
      },
      onResponseData: (...data) => handler.onResponseData?.(...data),
      onResponseEnd: (...end) => {
        this.#responses += 1;
        handler.onResponseEnd?.(...end);
      },
      onResponseError: (controller, error) => {
        const isStale = isReused && this.#isWaiting && causeOf(error).cause === 'closed';
        if (mayRepeat && isStale && !this.closed && !this.destroyed) {
          mayRepeat = false;
          super.dispatch(options, observed);
        } else handler.onResponseError?.(controller, error);
      },
    };
    return super.dispatch(options, observed);
  }
}

/** Returns what follows the complete `100 Continue` responses at the beginning. */
function afterContinue(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.subarray(0, CONTINUE.length).equals(CONTINUE)) {
    const end = rest.indexOf(END_OF_HEAD);
    if (end < 0) return rest;
    rest = rest.subarray(end + END_OF_HEAD.length);
  }
  return rest;
}

/** Whether the bytes are the beginning of a `100 Continue`, or none. */
function mayBeContinue(bytes: Buffer): boolean {
  const start = bytes.subarray(0, CONTINUE.length);
  return bytes.length <= MAX_HEAD_BYTES && start.equals(CONTINUE.subarray(0, start.length));
}
