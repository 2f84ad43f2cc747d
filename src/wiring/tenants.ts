import { existsSync, readdirSync } from 'node:fs';
import type { Config, TenantConfig } from '../config/schema.ts';
import { StartError } from '../config/start-error.ts';
import { createMetrics, type Metrics } from '../http/metrics/metrics.ts';
import type { Tenant } from '../http/tenants/tenant.ts';
import { LedgerError } from '../ledger/file/errors.ts';
import { tenantLedger, tenantsFolder } from '../ledger/file/files.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Log } from '../logging/logger.ts';
import { logOfTenant } from '../logging/tenant-log.ts';
import { VERSION } from '../platform/version.ts';
import type { Watcher } from '../watch/watcher.ts';
import { openLedger } from './ledger.ts';
import { type RunningServices, type SharedParts, startServices } from './services.ts';

type OpenedLedger = ReturnType<typeof openLedger> & { metrics: Metrics; log: Log };

type RunningTenant = RunningServices & {
  tenant: Tenant;
  settings: TenantConfig;
  /** Ends the feeds and waiting requests of its clients. */
  closing: AbortController;
};

/** How long polls and deliveries in flight of a removed tenant may take. */
const REMOVAL_LIMIT_MS = 5_000;

/** Returns the settings of a tenant: those of the process, with a ledger of its own, and without channels and heartbeat. */
function configOfTenant(config: Config, tenant: string): Config {
  const database = tenantLedger(config.database, tenant);
  return { ...config, database, channels: {}, routes: [], heartbeat: { ...config.heartbeat, url: undefined } };
}

type TenantsDeps = Pick<Parameters<typeof openLedger>[0], 'config' | 'clock' | 'log' | 'onSyncFailed' | 'syncSlots'>;

/** The tenants of a process. Each has its own ledger and its own services. */
export class Tenants {
  readonly #deps: TenantsDeps;
  /** Ledgers that are open but have no services yet, before `start`. */
  readonly #ledgers = new Map<string, OpenedLedger>();
  readonly #running = new Map<string, RunningTenant>();
  /** Tenants started by a reload that may still be refused; they are then closed. */
  readonly #prepared = new Map<string, RunningTenant>();
  readonly #closing = new Map<string, Promise<void>>();
  #shared: { parts: SharedParts; watcher: Watcher } | undefined;
  #isPolling = false;

  /** Opens the ledger of each tenant. Throws StartError. */
  constructor(deps: TenantsDeps) {
    this.#deps = deps;
    const { config, log } = deps;
    try {
      for (const name of Object.keys(config.tenants)) this.#ledgers.set(name, this.#openLedger(name, config));
    } catch (error) {
      this.#closeLedgers();
      throw error;
    }
    const unknown = storedTenants(config.database).filter((name) => !Object.hasOwn(config.tenants, name));
    for (const tenant of unknown) log.warn({ tenant }, 'tenant.not_configured');
  }

  /** The ledgers of the tenants of the settings. */
  get ledgers(): Ledger[] {
    return [...this.#ledgers.values()].map(({ ledger }) => ledger);
  }

  /** The tenants that requests can concern. */
  get(name: string): Tenant | undefined {
    return this.#running.get(name)?.tenant;
  }

  get all(): { tenant: Tenant; settings: TenantConfig; metrics: Metrics }[] {
    return [...this.#running.values()];
  }

  /** Starts the services of all tenants. `watcher`: the one whose upstreams they share. */
  async start(parts: SharedParts, watcher: Watcher): Promise<void> {
    this.#shared = { parts, watcher };
    const { config } = this.#deps;
    for (const [name, settings] of Object.entries(config.tenants))
      this.#running.set(name, await this.#startTenant(name, config, settings));
  }

  startPolling(): void {
    this.#isPolling = true;
    for (const { tenant } of this.#running.values()) tenant.services.watcher.start();
  }

  /** Starts the tenants that only the new settings have. `apply` also stops those that they do not have. Throws StartError. */
  async prepare(next: Config): Promise<{ apply: () => void; discard: () => Promise<void> }> {
    try {
      return { apply: await this.#prepare(next), discard: () => this.#discard() };
    } catch (error) {
      await this.#discard();
      throw error;
    }
  }

  async #prepare(next: Config): Promise<() => void> {
    const names = Object.keys(next.tenants);
    for (const name of names) {
      if (this.#running.has(name)) continue;
      await this.#closing.get(name);
      const settings = next.tenants[name] as TenantConfig;
      this.#prepared.set(name, await this.#startTenant(name, next, settings));
    }
    const prepared = [...this.#prepared];
    const kept = [...this.#running, ...prepared].filter(([name]) => names.includes(name));
    const apply = await Promise.all(
      kept.map(([name, { notifications }]) => notifications.prepare(configOfTenant(next, name))),
    );
    return () => {
      for (const applyRouting of apply) applyRouting();
      for (const [name, running] of kept) this.#apply(running, next.tenants[name] as TenantConfig);
      for (const [name, running] of prepared) this.#admit(name, running);
      for (const [name, running] of this.#running) if (!names.includes(name)) this.#remove(name, running);
      this.#prepared.clear();
    };
  }

  /** Closes the tenants of settings that are not applied. */
  async #discard(): Promise<void> {
    const discarded = [...this.#prepared.values()];
    this.#prepared.clear();
    await Promise.all(discarded.map((running) => this.#close(running, () => REMOVAL_LIMIT_MS)));
  }

  async close(leftMs: () => number): Promise<void> {
    await Promise.all([...this.#running, ...this.#prepared].map(([, running]) => this.#close(running, leftMs)));
    this.#running.clear();
    await Promise.all(this.#closing.values());
    this.#closeLedgers();
  }

  /** Ends the feeds and waiting requests of clients, because the server stops. */
  endRequests(): void {
    for (const { closing } of this.#running.values()) closing.abort();
  }

  #openLedger(name: string, config: Config): OpenedLedger {
    const log = logOfTenant(this.#deps.log, name);
    const metrics = createMetrics({ version: VERSION, tenant: name });
    const { clock, onSyncFailed, syncSlots } = this.#deps;
    try {
      const own = configOfTenant(config, name);
      const opened = openLedger({ config: own, clock, log, counters: metrics.counters, onSyncFailed, syncSlots });
      return { ...opened, metrics, log };
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      throw new StartError(`the tenant ${name} cannot be served: ${error.message}`);
    }
  }

  async #startTenant(name: string, config: Config, settings: TenantConfig): Promise<RunningTenant> {
    if (!this.#shared) throw new Error('start has not been called');
    const { parts, watcher } = this.#shared;
    const opened = this.#ledgers.get(name) ?? this.#openLedger(name, config);
    this.#ledgers.delete(name);
    const { ledger } = opened;
    try {
      const own = { ...opened, tenant: name, config: configOfTenant(config, name), listeners: [], sharesWith: watcher };
      const weight = (): number => running.settings.weight;
      const services = await startServices(parts, { ...own, weight });
      const closing = new AbortController();
      const tenant: Tenant = {
        name,
        services: services.services,
        closing: closing.signal,
        requestsPerMinute: () => running.settings.requests_per_minute,
      };
      const running: RunningTenant = { ...services, tenant, settings, closing };
      this.#apply(running, settings);
      return running;
    } catch (error) {
      ledger.close();
      throw error;
    }
  }

  #apply(running: RunningTenant, settings: TenantConfig): void {
    running.settings = settings;
    running.tenant.services.ledger.quota.max = settings.max_open === 0 ? null : settings.max_open;
  }

  #admit(name: string, running: RunningTenant): void {
    this.#running.set(name, running);
    if (this.#isPolling) running.tenant.services.watcher.start();
    this.#deps.log.info({ tenant: name }, 'tenant.started');
  }

  #remove(name: string, running: RunningTenant): void {
    this.#running.delete(name);
    const ended = this.#close(running, () => REMOVAL_LIMIT_MS).then(() => {
      this.#closing.delete(name);
      this.#deps.log.info({ tenant: name }, 'tenant.stopped');
    });
    this.#closing.set(name, ended);
  }

  async #close(running: RunningTenant, leftMs: () => number): Promise<void> {
    running.closing.abort();
    await running.close(leftMs);
    running.tenant.services.ledger.close();
  }

  #closeLedgers(): void {
    for (const { ledger } of this.#ledgers.values()) ledger.close();
    this.#ledgers.clear();
  }
}

/** Returns the names of the tenants that have a ledger. */
function storedTenants(database: string): string[] {
  const folder = tenantsFolder(database);
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) => /^(.+)\.db$/.exec(file)?.[1] ?? []);
}
