import type { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import type { ChannelResults } from './channel-results.ts';
import {
  type DeadLetters,
  type DeadReason,
  type Delivery,
  type DeliveryResult,
  type DeliveryState,
  parseDestination,
} from './delivery.ts';
import type { Webhooks } from './webhooks-store.ts';

/** How soon a delivery is sent to the new address of its webhook. */
const MOVED_RETRY_MS = 5_000;

/**
 * Records the results of attempts: the attempt, the next state of the delivery, and the health of
 * its webhook.
 */
export class AttemptResults {
  readonly #db: LedgerDatabase;
  readonly #webhooks: Webhooks;
  readonly #channels: ChannelResults;
  readonly #dead: CommittedChanges<DeadLetters>;

  constructor(
    database: LedgerDatabase,
    deps: { webhooks: Webhooks; channels: ChannelResults; dead: CommittedChanges<DeadLetters> },
  ) {
    this.#db = database;
    this.#webhooks = deps.webhooks;
    this.#channels = deps.channels;
    this.#dead = deps.dead;
  }

  /**
   * Must be called inside a transaction. A webhook that has only failed for `disableAfterMs` is
   * disabled.
   */
  record(result: DeliveryResult, disableAfterMs: number): void {
    const { deliveryId, destination, attempts, revision, attempt, next } = result;
    const row = this.#db.row<Pick<Delivery, 'state' | 'attempts'>>`
      SELECT state, attempts FROM deliveries WHERE id = ${deliveryId}`;
    if (!row) return;
    this.#db.run(
      `INSERT INTO attempts (delivery, at, duration_ms, http_status, error, response)
       VALUES (@deliveryId, @at, @durationMs, @httpStatus, @error, @response)`,
      { deliveryId, ...attempt },
    );
    const endedAt = attempt.at + attempt.durationMs;
    const parsed = parseDestination(destination);
    const webhookId = parsed.kind === 'webhook' ? parsed.webhookId : undefined;
    // The attempt went to an earlier address: its result does not count for the webhook.
    const isMoved = webhookId !== undefined && this.#webhooks.revisionOf(webhookId) !== revision;
    const isUndeliverable = next.kind === 'dead' && next.reason === 'undeliverable';
    if (next.kind === 'delivered') this.#end(deliveryId, 'delivered', null, endedAt);
    // The webhook was deleted or disabled during the attempt: that decision stays.
    else if (row.state !== 'waiting')
      this.#db.run`UPDATE deliveries SET attempts = attempts + 1 WHERE id = ${deliveryId}`;
    // The delivery was replayed during the attempt: it starts over.
    else if (row.attempts !== attempts) return;
    else if (next.kind === 'retry') this.#retry(deliveryId, next.at);
    else if (isMoved && !isUndeliverable) this.#retry(deliveryId, endedAt + MOVED_RETRY_MS);
    else {
      const reason = next.kind === 'gone' ? 'endpoint_gone' : next.reason;
      this.#end(deliveryId, 'dead', reason, endedAt);
      this.#dead.add({ destination, reason, count: 1 });
    }
    // An event that cannot be sent is no failure of the receiver.
    if (parsed.kind === 'channel' && !isUndeliverable)
      this.#channels.record(parsed.name, { isSuccess: next.kind === 'delivered', at: endedAt });
    if (webhookId === undefined || isMoved || isUndeliverable) return;
    if (next.kind === 'delivered') this.#webhooks.succeeded(webhookId);
    else if (next.kind === 'gone') this.#webhooks.disable(webhookId, 'gone', endedAt);
    else this.#webhooks.failed(webhookId, endedAt, disableAfterMs);
  }

  #retry(id: number, nextAt: number): void {
    this.#db
      .run`UPDATE deliveries SET attempts = attempts + 1, next_at = ${nextAt} WHERE id = ${id}`;
  }

  #end(id: number, state: DeliveryState, deadReason: DeadReason | null, endedAt: number): void {
    this.#db.run`
      UPDATE deliveries
      SET attempts = attempts + 1, state = ${state}, dead_reason = ${deadReason}, next_at = NULL, ended_at = ${endedAt}
      WHERE id = ${id}`;
  }
}
