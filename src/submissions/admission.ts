import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { logOf } from '../http/typed-server.ts';
import type { Intake } from './intake.ts';

/** The exhausted resource. */
export type ShedReason = 'tracking' | 'held_open';

/** Memory of a request besides its body. */
const REQUEST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

type AdmissionDeps = {
  intake: Intake;
  maxHeldOpen: number;
  onShed: (reason: ShedReason) => void;
};

/**
 * Admission control for tracking requests and for requests held open. Requests that cannot be
 * served soon are refused with 503 and Retry-After, before their bodies are read if possible.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  /** Bytes of bodies being received, and of requests that wait. */
  #bodyBytes = 0;
  #heldOpen = 0;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /**
   * preParsing hook of tracking requests: refuses a request before its body is read, by its
   * declared length, and accounts for the body as it is received, whatever length was declared.
   */
  readonly admitBody = (
    request: FastifyRequest,
    reply: FastifyReply,
    _body: unknown,
    done: () => void,
  ): void => {
    // A longer body is refused by its limit.
    const declared = Math.min(
      request.routeOptions.bodyLimit,
      Number(request.headers['content-length'] ?? 0),
    );
    if (!this.#mayReceive(REQUEST_BYTES + declared) || this.#deps.intake.isFull()) {
      this.shed('tracking', request, reply);
      return;
    }
    let bytes = REQUEST_BYTES;
    this.#bodyBytes += bytes;
    reply.raw.once('close', () => {
      this.#bodyBytes -= bytes;
      bytes = 0;
    });
    request.raw.on('data', ({ length }: Buffer) => {
      if (reply.sent) return;
      if (this.#mayReceive(length)) {
        bytes += length;
        this.#bodyBytes += length;
      } else this.shed('tracking', request, reply.header('connection', 'close'));
    });
    done();
  };

  /** Limits the requests of routes with `staysOpen`. */
  boundHeldOpen(app: FastifyInstance): void {
    app.addHook('preHandler', (request, reply, done) => {
      if (!request.routeOptions.config?.staysOpen) {
        done();
        return;
      }
      if (this.#heldOpen >= this.#deps.maxHeldOpen) {
        this.shed('held_open', request, reply);
        return;
      }
      this.#heldOpen += 1;
      reply.raw.once('close', () => {
        this.#heldOpen -= 1;
      });
      done();
    });
  }

  shed(reason: ShedReason, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const retryAfterS = RETRY_AFTER_S[reason];
    this.#deps.onShed(reason);
    logOf(request).warn({ reason, waiting_ids: this.#deps.intake.waitingIds }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const detail =
      reason === 'tracking'
        ? 'too many ids are waiting: nothing of the request was accepted'
        : 'too many requests are held open';
    return sendProblem(reply, { status: 503, detail: `${detail}; try again in ${retryAfterS} s` });
  }

  #mayReceive(bytes: number): boolean {
    return this.#bodyBytes + bytes <= MAX_BODY_BYTES;
  }
}
