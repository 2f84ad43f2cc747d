import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { auditLedger } from '../../support/ledger/audit.ts';
import { STEP_MS } from '../../support/patience.ts';
import { type KillableServer, sleep } from '../../support/processes/killable-server.ts';
import { eventIdsOf } from '../../support/servers/deliveries.ts';
import type { EventReceiver } from '../../support/servers/event-receiver.ts';

type AuditOptions = {
  /** The server after the faults, still running and idle. */
  server: KillableServer;
  /** The correct final status of every acknowledged id. */
  expected: ReadonlyMap<string, string>;
  /** The receiver of every event. */
  receiver?: Pick<EventReceiver, 'bodies' | 'invalid'>;
  /** Whether the chain must have confirmed each finalized submission. */
  isVerified?: boolean;
  /** The maximum memory of the idle server. */
  memoryMiB?: number;
};

/** An idle server uses 90 to 130 MiB, plus garbage that has not been collected yet. */
const MEMORY_MIB = 300;

/**
 * Stops the server and asserts what must hold after any fault: each acknowledged id has its correct
 * final status, histories have no gap and no repeat, the ledger passes its integrity check, every
 * event arrived under one id with one body, memory was released, and no process is left.
 */
export async function auditAfterFault({
  server,
  expected,
  receiver,
  isVerified = false,
  memoryMiB = MEMORY_MIB,
}: AuditOptions) {
  const heldMiB = await waitForMemory(server, memoryMiB);
  expect(await server.stop(), server.lines.slice(-3).join('\n')).toBe(0);
  const statuses = auditLedger(server.file, expected.keys(), { isVerified });
  const wrong = [...expected].filter(([id, status]) => statuses.get(id) !== status);
  expect(wrong.map(([id, status]) => `${id} is ${statuses.get(id)}, not ${status}`)).toEqual([]);
  if (receiver) auditEvents(eventIdsOf(server.file), receiver);
  expect(processesReferringTo(server.folder)).toEqual([]);
  const arrived = receiver ? `, ${receiver.bodies.size} events` : '';
  console.log(
    `audit: ${expected.size} ids${arrived}, ${heldMiB?.toFixed(0) ?? '?'} of at most ${memoryMiB} MiB`,
  );
}

async function waitForMemory(server: KillableServer, maxMiB: number): Promise<number | undefined> {
  const until = performance.now() + STEP_MS;
  for (;;) {
    const heldMiB = server.residentMiB();
    if (heldMiB === undefined || heldMiB <= maxMiB) return heldMiB;
    if (performance.now() > until)
      throw new Error(`${heldMiB.toFixed(0)} MiB are held, at most ${maxMiB} may be`);
    await sleep(500);
  }
}

function auditEvents(
  eventIds: readonly string[],
  { bodies, invalid }: Pick<EventReceiver, 'bodies' | 'invalid'>,
): void {
  expect(invalid).toEqual([]);
  expect(eventIds.filter((id) => !bodies.has(id))).toEqual([]);
  const known = new Set(eventIds);
  expect([...bodies.keys()].filter((id) => !known.has(id))).toEqual([]);
  expect([...bodies].filter(([, each]) => each.size !== 1)).toEqual([]);
}

/**
 * Returns the command lines of processes that refer to this folder; none if the system does not
 * show them.
 */
function processesReferringTo(folder: string): string[] {
  if (!existsSync('/proc/self/cmdline')) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLine(join('/proc', pid, 'cmdline')))
    .filter((line) => line.includes(folder));
}

function commandLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
