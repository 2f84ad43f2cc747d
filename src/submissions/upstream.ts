import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { escapeText } from '../lib/text.ts';
import type { UpstreamEventType } from './event-types.ts';

export type UpstreamRecord = {
  state: BreakerState;
  /** Start of the current outage; null: there is none. */
  outSince: number | null;
  reason: string | null;
  /** Until when the upstream asked to be left alone. */
  pausedUntil: number | null;
  /** Until when a process may have been polling. */
  pollingUntil: number | null;
  snapshot: string | null;
  /** Hash of block 0 of its chain; null: no node has confirmed a block yet. */
  genesisHash: string | null;
};

/** `at`: epoch ms. `reason`: of the outage, or of the one that ended after `lastedMs`. */
export type UpstreamChange = {
  upstream: string;
  at: number;
  event: UpstreamEventType;
  reason: string;
  lastedMs: number;
  record: Pick<UpstreamRecord, 'state' | 'outSince'>;
};

/** The circuit breaker of an upstream: `up` is closed, every other state is open. */
export const BreakerState = {
  up: 'up',
  /** The upstream fails: only probes are sent. */
  down: 'down',
  /** The upstream refuses our credentials: only slow probes are sent. */
  unauthorized: 'unauthorized',
} as const;
export type BreakerState = (typeof BreakerState)[keyof typeof BreakerState];

/** In every response, metric and page. `paused`: long. */
export const UPSTREAM_STATES = ['up', 'down', 'unauthorized', 'paused'] as const;
export type UpstreamState = (typeof UPSTREAM_STATES)[number];

export function isSeen({ kind }: { kind: string }): boolean {
  return kind === 'pending' || kind === 'error' || kind === 'finalized';
}

/**
 * What each upstream keeps across restarts: its outage, its pause, until when it may have been
 * polled, and the learned pacing.
 */
type UpstreamEvents = {
  addUpstreamEvent(
    type: UpstreamEventType,
    detail: { upstream: string; reason: string },
    at: number,
  ): void;
};

/** The commonest state other than Pending among the oldest pending submissions. */
const ODD_STATE = `
  SELECT h.upstream_state AS state, count(nullif(h.response ->> '$.data.block_hash', '')) AS blocks
  FROM (SELECT id, version FROM submissions
        WHERE upstream = ? AND watched = 1 AND status = 'pending' AND chain IS NULL ORDER BY id LIMIT 1000) s
  JOIN history h ON h.submission = s.id AND h.version = s.version
  WHERE lower(h.upstream_state) <> 'pending' GROUP BY state ORDER BY count(*) DESC LIMIT 1`;

/** Names a state that keeps submissions pending although it is not Pending; null: there is none. */
export function oddStateOf(database: LedgerDatabase, upstream: string): string | null {
  const odd = database.row<{ state: string; blocks: number }>(ODD_STATE, upstream);
  if (!odd) return null;
  const ids = odd.blocks === 1 ? '1 id has' : `${odd.blocks} ids have`;
  return `it reports the state ${escapeText(odd.state, 40)}, ${ids} a block`;
}

export class UpstreamStore {
  readonly #db: LedgerDatabase;

  readonly #events: UpstreamEvents;

  constructor(database: LedgerDatabase, events: UpstreamEvents) {
    this.#db = database;
    this.#events = events;
  }

  get(name: string): UpstreamRecord {
    this.#db.run`INSERT INTO upstreams (name) VALUES (${name}) ON CONFLICT DO NOTHING`;
    return this.#db.row<UpstreamRecord>`
      SELECT state, out_since AS outSince, reason, paused_until AS pausedUntil, polling_until AS pollingUntil,
             (SELECT value FROM meta WHERE key = 'pacing:' || name) AS snapshot,
             (SELECT value FROM meta WHERE key = 'genesis:' || name) AS genesisHash
      FROM upstreams WHERE name = ${name}` as UpstreamRecord;
  }

  recordOutage({ upstream, record, event, at, reason }: UpstreamChange): void {
    this.#db.transaction(() => {
      const { state, outSince } = record;
      this.#db.run`
        UPDATE upstreams SET state = ${state}, out_since = ${outSince}, reason = ${outSince === null ? null : reason}
        WHERE name = ${upstream}`;
      this.#events.addUpstreamEvent(event, { upstream, reason }, at);
    });
  }

  /** Stores the hash of block 0 of the upstream's chain, unless there is one. */
  keepGenesisHash(name: string, hash: string): void {
    this.#db
      .run`INSERT INTO meta (key, value) VALUES (${`genesis:${name}`}, ${hash}) ON CONFLICT DO NOTHING`;
  }

  /** Returns the stored hash of block 0 of the chain of each upstream; null: none. */
  genesisHashes(): Map<string, string | null> {
    const rows = this.#db.rows<{ name: string; hash: string | null }>(
      "SELECT name, (SELECT value FROM meta WHERE key = 'genesis:' || name) AS hash FROM upstreams",
    );
    return new Map(rows.map(({ name, hash }) => [name, hash]));
  }

  setPause(name: string, until: number, reason: string | null): void {
    this.#db
      .run`UPDATE upstreams SET paused_until = ${until}, reason = ${reason} WHERE name = ${name}`;
  }

  /** Until when this process may send polls. A null snapshot changes nothing. */
  setPolling(name: string, until: number, snapshot: string | null): void {
    this.#db.transaction(() => {
      this.#db.run`UPDATE upstreams SET polling_until = ${until} WHERE name = ${name}`;
      if (snapshot === null) return;
      this.#db.run`
        INSERT INTO meta (key, value) VALUES (${`pacing:${name}`}, ${snapshot})
        ON CONFLICT DO UPDATE SET value = excluded.value`;
    });
  }
}
