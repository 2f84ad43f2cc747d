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

/**
 * One connection at a time. If the server closes a reused one before the first byte of a response,
 * the request is sent once more on a new one, unless this could repeat an effect (`idempotent`;
 * default: only GET may be repeated).
 */
class OutgoingClient extends Client {
  /** Complete responses on the open connection. */
  #responses = 0;
  /** Bytes that the open connection has received; 0 for HTTP/2, where they have several causes. */
  #bytesRead = () => 0;

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
    this.#bytesRead = () => (isHttp2 ? 0 : socket.bytesRead);
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    let mayRepeat = options.idempotent ?? options.method === 'GET';
    let isReused = false;
    let bytesBefore = 0;
    const observed: Dispatcher.DispatchHandler = {
      onRequestStart: (controller, context) => {
        isReused = this.#responses > 0;
        bytesBefore = this.#bytesRead();
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
        const isUnanswered = isReused && this.#bytesRead() === bytesBefore;
        const isStale = isUnanswered && causeOf(error).cause === 'closed';
        if (mayRepeat && isStale && !this.closed && !this.destroyed) {
          mayRepeat = false;
          super.dispatch(options, observed);
        } else handler.onResponseError?.(controller, error);
      },
    };
    return super.dispatch(options, observed);
  }
}
