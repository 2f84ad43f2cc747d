import { AuditTrail } from '../access/audit-store.ts';
import { CredentialStore } from '../access/credentials-store.ts';
import { PeopleStore, SessionStore } from '../access/sessions.ts';
import { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import { closingOnError, type OpenOptions, openDatabase } from '../ledger/open.ts';
import { claimPrimary } from '../ledger/primary.ts';
import type { Clock } from '../lib/clock.ts';
import { Deliveries } from '../notifications/deliveries-store.ts';
import type { DeadLetters } from '../notifications/delivery.ts';
import { EventLog } from '../notifications/event-log.ts';
import { EventRoutes, Outbox } from '../notifications/outbox.ts';
import { Receivers } from '../notifications/receivers-store.ts';
import { Webhooks } from '../notifications/webhooks-store.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { FinalitySums, LedgerStats } from '../submissions/ledger-stats.ts';
import { Pruning } from '../submissions/pruning.ts';
import { SubmissionSearch } from '../submissions/search.ts';
import { StatusCounts, SubmissionQueries } from '../submissions/submission-queries.ts';
import { SubmissionStore } from '../submissions/submission-store.ts';
import { UpstreamStore } from '../submissions/upstream.ts';
import type { Config } from './settings.ts';

/**
 * One SQLite file. Every method that writes is one transaction: on the disk when it returns, undone
 * when it throws LedgerError. Listeners are called after the commit.
 */
export class Ledger {
  readonly file: string;
  readonly credentials: CredentialStore;
  readonly audit: AuditTrail;
  readonly sessions: SessionStore;
  readonly people: PeopleStore;
  readonly store: SubmissionStore;
  readonly submissions: SubmissionQueries;
  readonly upstreams: UpstreamStore;
  readonly search: SubmissionSearch;
  readonly routes: EventRoutes;
  readonly outbox: Outbox;
  readonly events: EventLog;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly stats: LedgerStats;
  readonly pruning: Pruning;
  readonly sums: FinalitySums;
  readonly database: LedgerDatabase;
  readonly #installation: string;
  readonly #close: () => void;

  /** `onSyncFailed`: see LedgerDatabase. */
  constructor(options: OpenOptions & { onSyncFailed?: (error: unknown) => void }) {
    const { db, installation, close } = openDatabase(options);
    const database = new LedgerDatabase(db, options.file, options.onSyncFailed);
    const counts = new StatusCounts(database);
    this.file = options.file;
    this.database = database;
    this.#installation = installation;
    this.#close = close;
    this.credentials = new CredentialStore(database);
    this.audit = new AuditTrail(database);
    this.sessions = new SessionStore(database, this.audit);
    this.people = new PeopleStore(database, this.sessions);
    this.submissions = new SubmissionQueries(database);
    this.search = new SubmissionSearch(database, counts);
    const dead = new CommittedChanges<DeadLetters>(database);
    this.routes = new EventRoutes(database);
    this.outbox = new Outbox(database, { routes: this.routes, dead });
    this.events = new EventLog(database, this.outbox.added);
    this.receivers = new Receivers(database, this.routes);
    const notifying = { routes: this.routes, outbox: this.outbox, receivers: this.receivers, dead };
    this.webhooks = new Webhooks(database, notifying);
    this.deliveries = new Deliveries(database, { ...notifying, webhooks: this.webhooks });
    this.stats = new LedgerStats(database, counts);
    this.pruning = new Pruning(database, counts);
    this.upstreams = new UpstreamStore(database, this.outbox);
    this.sums = new FinalitySums(database);
    const { outbox, sums } = this;
    this.store = new SubmissionStore(database, { outbox, counts, sums });
  }

  close(): void {
    this.#close();
  }

  /** Must be called before anything else is written. See primary.ts. */
  claim(now: number) {
    return claimPrimary(this.database, { installation: this.#installation, now });
  }
}

const DAY_MS = 86_400_000;

/**
 * Makes this server the primary. `onSyncFailed`: committed data could not be stored; must end the
 * process. Default: the uncaught error does. Throws LedgerError.
 */
export function openLedger({
  config,
  clock,
  log,
  onSyncFailed = throwUncaught,
}: {
  config: Config;
  clock: Clock;
  log: Log;
  onSyncFailed?: ((error: unknown) => void) | undefined;
}): Ledger {
  const ledger = new Ledger({
    file: config.database,
    now: clock.now(),
    onRecovery: () => log.warn({}, 'ledger.recovering'),
    onSyncFailed(error) {
      log.error({ err: error }, 'ledger.sync_failed');
      onSyncFailed(error);
    },
  });
  const { isCopy, generation } = closingOnError(
    () => ledger.close(),
    () => ledger.claim(clock.now()),
  );
  if (isCopy) log.warn({ generation }, 'ledger.continued');
  const behindMs = (ledger.submissions.newestChangeAt() ?? 0) - clock.now();
  if (behindMs > DAY_MS) log.warn({ behind_s: Math.round(behindMs / 1_000) }, 'clock.behind');
  return ledger;
}

function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}
