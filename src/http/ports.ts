import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Actor } from '../access/audit-actions.ts';
import type { Rights } from '../access/scopes.ts';
import type { EventLog } from '../notifications/event-log.ts';
import type { Subscription } from '../notifications/subscription.ts';
import type { ReloadResult } from '../operations/config/reload.ts';
import type { Watcher } from '../polling/watcher.ts';
import type { RedisHealth } from '../redis/redis-link.ts';
import type { TrackResult, UpdateResult } from '../submissions/ports.ts';
import { CONFIGURED_CREDENTIALS, type Submission } from '../submissions/submission.ts';
import { acceptedText } from '../submissions/track-in-parts.ts';
import type { TrackRequests } from '../submissions/track-request.ts';

/** A server whose handlers get the types of their zod schemas. */
export type TypedServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** `field`: place of the cause in the body, as a JSON pointer without its first slash. */
export type TrackRequestResult =
  | Exclude<TrackResult, { kind: 'conflict' | 'late' }>
  | { kind: 'conflict'; field: string; submission: Submission; stored?: number }
  | { kind: 'invalid'; field: string; reason: string };

/** Returns the result for a client: a refusal names the place of its cause in the body. */
export function trackResultOf(
  { fieldOf }: Extract<TrackRequests, { kind: 'requests' }>,
  result: TrackResult,
): TrackRequestResult {
  switch (result.kind) {
    case 'tracked':
      return result;
    case 'conflict': {
      const { index, ...conflict } = result;
      return { ...conflict, field: fieldOf(index, 'submission_id') };
    }
    case 'late': {
      const { stored } = result;
      const reason = `the deadline is not in the future${stored ? `; ${acceptedText(stored)}` : ''}`;
      return { kind: 'invalid', field: fieldOf(result.index, 'deadline'), reason };
    }
    default:
      return result satisfies never;
  }
}

/** Undefined: the id was never tracked. */
export type UpdateRequestResult = UpdateResult | { kind: 'invalid'; field: string; reason: string } | undefined;

/** All events in commit order, for the live feed: the public methods of the log, which tests replace. */
export type FeedLog = Pick<EventLog, keyof EventLog>;

export type Caller = Rights & {
  /** null for a configured credential. */
  id: number | null;
  /** For the audit. */
  name: string;
};

/** Returns the key by which limits are shared: the credential. */
export function clientOf(caller: Caller | undefined): string {
  return caller === undefined ? '' : `${caller.id ?? caller.name}`;
}

/** Returns the number that the ledger stores as the tracking credential of a submission; null: not known. */
export function credentialNumber(caller: Caller | undefined): number | null {
  if (!caller) return null;
  return caller.id ?? CONFIGURED_CREDENTIALS[caller.role === 'admin' ? 'admin' : 'service'];
}

/** Returns the owner of a secret by its SHA-256; undefined if it is unknown, expired or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;

/** `redis`: undefined without Redis. */
export type Readiness = ReturnType<Watcher['health']> & { redis?: RedisHealth | undefined };

/** A channel of the settings, or the queue. `routes`: the subscriptions whose events it receives. */
export type ChannelDescription = {
  name: string;
  type: string;
  /** Without secrets. */
  address: string;
  routes: Subscription[];
};

/** Reloads the settings. Rejects if the result cannot be audited; then nothing was applied. */
export type Reload = (actor: Actor) => Promise<ReloadResult>;
