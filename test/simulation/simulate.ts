import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Disk, isOfKilledProcess } from './machine/disk.ts';
import { Machine, START_MS } from './machine/machine.ts';
import { Network } from './machine/network.ts';
import { createRandom } from './machine/random.ts';
import { CALLBACK_URL, Callers } from './world/callers.ts';
import { Checks } from './world/checks.ts';
import { Faults } from './world/faults.ts';
import { Receiver } from './world/receivers.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SimulatedServer, SLACK_URL, TOKEN } from './world/server.ts';
import { createUpstream, UPSTREAM_URL } from './world/upstream.ts';

export type Settings = { seed: number; days: number; without: ReadonlySet<string> };
export type Result = {
  /** What must not have happened; empty: nothing. */
  defects: string[];
  /** After how many days the simulation ended. */
  days: number;
  /** SHA-256 of the ledgers at the end. */
  digest: string;
  counts: Record<string, number>;
  /** How often each fault and each action occurred. */
  occurrences: Record<string, number>;
  /** The last lines of the log. */
  lines: readonly string[];
};

const STARTED_MS = 100;
const SETUP_MS = 1_000;
const STEP_MS = 3 * MINUTE_MS;
/**
 * After the faults, in which everything has to end: a deadline, an outage that extends it, and the
 * retry schedule.
 */
const HEALED_MS = 3 * DAY_MS;
const HOOK_URL = 'https://hook.test';

/**
 * Runs the server for some virtual days with random faults, and returns the first defects. The same
 * settings give the same result.
 */
export async function simulate({
  seed,
  days,
  without,
  onHour,
}: Settings & { onHour: (hour: number) => void }): Promise<Result> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const parent = mkdtempSync(join(memory, 'dawatch-simulation-'));
  const machine = new Machine(seed);
  const defects: string[] = [];
  const onDefect = (text: string) => {
    defects.push(`day ${((machine.now - START_MS) / DAY_MS).toFixed(3)}: ${text}`);
  };
  const onRejection = (error: unknown) => {
    if (!isOfKilledProcess(error)) onDefect(String((error as Error).stack));
  };
  // A callback of a running process must not use what has been closed.
  const onException = (error: unknown) => {
    if (machine.isAlive || !isOfKilledProcess(error)) onDefect(String((error as Error).stack));
  };
  process.on('unhandledRejection', onRejection).on('uncaughtException', onException);

  const occurrences: Record<string, number> = {};
  const note = (occurrence: string) => {
    occurrences[occurrence] = (occurrences[occurrence] ?? 0) + 1;
  };

  const disk = new Disk(join(parent, 'disk'), {
    machine,
    note,
  });
  const network = new Network(machine, createRandom(seed, 'network'));
  const upstream = createUpstream({
    machine,
    network,
    seed,
    onDefect,
    disturbedAt: () => faults.disturbedAt(['disk', 'clock']),
  });
  let checks: Checks | undefined;
  const check = () => checks?.run(callers.inOrder);
  const server: SimulatedServer = new SimulatedServer({
    machine,
    disk,
    random: createRandom(seed, 'server'),
    hasNode: !without.has('node'),
    onDefect,
    onStarted: () => machine.later(STARTED_MS, () => check()),
  });
  const receiving = {
    machine,
    onDefect,
    disturbedAt: () => faults.disturbedAt(['disk', 'receivers']),
  };
  const [hook, callback, slack] = [
    new Receiver(receiving),
    new Receiver(receiving),
    new Receiver(receiving),
  ];
  const receivers = [hook, callback, slack];
  for (const [index, origin] of [HOOK_URL, CALLBACK_URL, SLACK_URL].entries())
    network.hosts.set(origin, (sent) => (receivers[index] as Receiver).receive(sent));
  network.hosts.set(UPSTREAM_URL, (sent) => upstream.receive(sent));

  server.start();
  await machine.advance(machine.now);
  const created = network.call('POST', '/v1/webhooks', TOKEN, {
    url: `${HOOK_URL}/events`,
    types: ['*'],
  });
  await machine.advance(machine.now + SETUP_MS);
  const { id: webhookId } = JSON.parse((await created)?.body ?? '{}');
  const callers: Callers = new Callers({
    machine,
    network,
    upstream,
    random: createRandom(seed, 'callers'),
    without,
    onDefect,
    mayRefuse: () => faults.disturbedAt(['disk']) > machine.now - MINUTE_MS,
    note,
  });
  const faults: Faults = new Faults({
    machine,
    disk,
    server,
    upstream,
    receivers,
    callers,
    note,
    seed,
    without,
  });
  checks = new Checks({ machine, disk, upstream, faults, onDefect, note });
  checks.destination = `webhook:${webhookId}`;
  const run = async (untilMs: number, isOver = () => false) => {
    while (machine.now < untilMs && defects.length === 0 && !isOver()) {
      const hour = Math.floor((machine.now - START_MS) / HOUR_MS);
      await machine.advance(Math.min(untilMs, machine.now + STEP_MS));
      if ((machine.now - START_MS) / HOUR_MS >= hour + 1) onHour(hour + 1);
      check();
    }
  };
  await run(START_MS + days * DAY_MS);
  callers.isActive = false;
  faults.heal();
  await run(machine.now + HEALED_MS, () => checks?.hasEnded() === true);
  if (defects.length === 0) {
    checks.checkEnd(callers.acknowledged.values());
    checks.checkReceived(hook.accepted);
    checks.checkCallbacks(callback.accepted);
  }
  const { expected } = checks;
  for (const id of callback.accepted.keys())
    if (!expected.has(id))
      onDefect(`a callback received the event ${id}, which is not in the ledger`);
  const delivered = checks.deliveredTo('channel:slack');
  if (slack.announced < delivered)
    onDefect(`Slack received ${slack.announced} of ${delivered} delivered events`);
  machine.kill();
  const digest = digestOf(disk.folder);
  rmSync(parent, { recursive: true });
  return {
    defects,
    days: (machine.now - START_MS) / DAY_MS,
    digest,
    counts: {
      submissions: callers.acknowledged.size,
      polls: upstream.polls,
      events: expected.size,
      kills: server.kills,
    },
    occurrences,
    lines: server.lines,
  };
}

/** Returns a hash of the pages of all ledgers. Their logs contain random numbers of SQLite. */
function digestOf(folder: string): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!file.endsWith('.db')) continue;
    const ledger = new Database(join(folder, file));
    hash.update(file).update(ledger.serialize());
    ledger.close();
  }
  return hash.digest('hex');
}
