import { join } from 'node:path';
import { type App, startApp } from '../../../src/app.ts';
import { createLog } from '../../../src/operations/logging/logger.ts';
import { type Config, configSchema } from '../../../src/wiring/settings.ts';
// Loaded before a simulation, because loading takes turns of the event loop, but no virtual time.
import '../../../src/polling/chain/node-connection.ts';
import type { Disk } from '../machine/disk.ts';
import type { Machine } from '../machine/machine.ts';
import type { Random } from '../machine/random.ts';
import { BUDGET, NODE_URL, UPSTREAM_URL } from './upstream.ts';

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
export const MINUTE_MS = 60_000;
export const TOKEN = 'the-admin-token-of-simulations-0123456789';
export const DATABASE = 'ledger.db';
export const DEADLINE_MS = 6 * HOUR_MS;
const GRACE_MS = HOUR_MS;
export const RETENTION_DAYS = 2;
export const SLACK_URL = 'https://slack.test';

const RESTART_MS = 5_000;
const MAX_LINES = 40;

type ServerDeps = {
  machine: Machine;
  disk: Disk;
  random: Random;
  /** Whether the settings name a node of the chain. */
  hasNode: boolean;
  onDefect: (text: string) => void;
  /** Called after each start. */
  onStarted: () => void;
};

/**
 * The program under test, complete and unchanged, with a supervisor that starts it again whenever
 * it ends.
 */
export class SimulatedServer {
  readonly lines: string[] = [];
  app: App | undefined;
  /** When the current process was started; outside of the machine. */
  bootedAt = 0;
  kills = 0;
  readonly #deps: ServerDeps;

  constructor(deps: ServerDeps) {
    this.#deps = deps;
    const { machine, disk } = deps;
    disk.install(DATABASE);
    machine.onKilled(() => {
      this.kills += 1;
      this.app = undefined;
      machine.later(RESTART_MS, () => this.start());
    });
  }

  start(): void {
    const { machine, disk, random, onDefect, onStarted } = this.#deps;
    this.bootedAt = machine.now;
    machine.boot(async () => {
      try {
        const app = await startApp({
          config: this.#config(),
          log: createLog(
            { level: 'info' },
            { write: (line) => this.#log(line) },
            { repeatsPerMinute: 0 },
          ),
          clock: machine.clock,
          random: random.next,
          tuning: {
            alertCheckMs: 300_000,
            shutdownMs: 5_000,
            deliveriesKeptMs: RETENTION_DAYS * DAY_MS,
          },
          onNewKey() {},
          onSyncFailed: () => machine.kill(),
        });
        if (!machine.isAlive) return;
        this.app = app;
        onStarted();
      } catch (error) {
        if (machine.isAlive && !disk.isFull) onDefect(`the server did not start: ${error}`);
        machine.kill();
      }
    });
  }

  /** Stops the process as SIGTERM does. */
  async stop(): Promise<void> {
    const { app } = this;
    this.app = undefined;
    await app?.close();
    this.#deps.machine.kill();
  }

  #log(line: string): void {
    this.lines.push(`${new Date(this.#deps.machine.now).toISOString()} ${line.trim()}`);
    if (this.lines.length > MAX_LINES) this.lines.shift();
  }

  #config(): Config {
    const slack = { type: 'slack', url: `${SLACK_URL}/services/1` };
    const everything = { types: ['*'], channels: ['slack'] };
    return configSchema.parse({
      server: { port: 0 },
      database: join(this.#deps.disk.folder, DATABASE),
      auth: { admin_token: TOKEN },
      limits: { requests_per_minute: 0 },
      upstreams: {
        default: {
          url: UPSTREAM_URL,
          api_key: 'key',
          budget: BUDGET,
          chain: { urls: this.#deps.hasNode ? [NODE_URL] : [] },
        },
      },
      // An id without a row is polled for long, by the safety net only.
      submissions: {
        recheck_after_s: 60,
        unknown_grace_s: GRACE_MS / 1_000,
        deadline_s: DEADLINE_MS / 1_000,
      },
      retention: { submissions_days: RETENTION_DAYS },
      channels: { slack },
      routes: [everything],
    });
  }
}
