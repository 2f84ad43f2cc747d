import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { MAIN, NODE_FLAGS } from '../../support/processes/child-process.ts';
import { prepareServer, sleep } from '../../support/processes/killable-server.ts';
import { redisForTest } from '../../support/redis/redis-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { generationOf } from './ledgers.ts';
import { replicaOf, run } from './litestream.ts';

export type Machine = Awaited<ReturnType<typeof prepareMachine>>;

/**
 * A host with its own disk and Redis, which runs the server and Litestream as docs/failover.md
 * describes for plain hosts.
 */
export async function prepareMachine(replicaFolder: string, settings: Record<string, unknown>) {
  const folder = tempFolder();
  const disk = join(folder, 'disk');
  const ledger = join(disk, 'dawatch.db');
  const copy = join(folder, 'primary.db');
  mkdirSync(disk);
  const redis = await redisForTest();
  const server = await prepareServer(folder, {
    ...settings,
    database: ledger,
    redis: { url: redis.url },
  });
  const replica = replicaOf({ folder, ledger, replica: replicaFolder });
  const checkPrimary = async () => {
    rmSync(copy, { force: true });
    expect(await replica.copyPrimary(copy)).toMatchObject({ code: 0 });
    return run(process.execPath, [
      ...NODE_FLAGS,
      MAIN,
      'check-primary',
      copy,
      '--config',
      join(folder, 'dawatch.yaml'),
    ]);
  };
  const kill = async () => {
    const children = childrenOf(server.pid());
    await server.kill();
    for (const child of children) killIfRunning(child);
  };
  onTestFinished(kill);
  return {
    ...server,
    redis,
    /** Resolves once the replica names the server of this generation. */
    async claimed(generation: number): Promise<void> {
      for (; ; await sleep(100)) {
        const file = join(tempFolder(), 'primary.db');
        expect(await replica.copyPrimary(file)).toMatchObject({ code: 0 });
        if (existsSync(file) && generationOf(file) === generation) return;
      }
    },
    /** Resolves with a copy of what the replica contains now. */
    async replicated(): Promise<string> {
      const file = join(tempFolder(), 'replica.db');
      expect(await replica.copyLedger(file)).toMatchObject({ code: 0 });
      return file;
    },
    /**
     * Starts Litestream and the server. Returns a copy of the ledger from before; undefined without
     * a replica. Throws the output of `dawatch check-primary` if it refuses.
     */
    async start(): Promise<string | undefined> {
      expect(await replica.restoreLedger()).toMatchObject({ code: 0 });
      const { code, output } = await checkPrimary();
      if (code !== ExitCode.ok) throw new RefusedError(code, output);
      const before = existsSync(ledger) ? join(tempFolder(), 'before.db') : undefined;
      if (before !== undefined) copyFileSync(ledger, before);
      server.start({ through: replica.through });
      return before;
    },
    /**
     * Stops the server, and Litestream after it. Resolves with 0 if the server ended gracefully;
     * Litestream 0.3 itself may fail after it has replicated everything.
     */
    async stop(): Promise<number> {
      await server.stop();
      return server.logged('server.stopped').length > 0 ? 0 : 1;
    },
    /** Ends everything at once. */
    die: () => Promise.all([kill(), redis.kill()]),
    /** Returns a copy of the ledger on the disk. */
    copyOfLedger(): string {
      const copy = tempFolder();
      cpSync(disk, copy, { recursive: true });
      return join(copy, basename(ledger));
    },
    /** Replaces the disk by an empty one. */
    wipe(): void {
      rmSync(disk, { recursive: true });
      mkdirSync(disk);
    },
  };
}

class RefusedError extends Error {
  readonly code: number;
  constructor(code: number, output: string) {
    super(output);
    this.code = code;
  }
}

/** Returns the processes that any thread of a process started. */
function childrenOf(pid: number | undefined): number[] {
  const tasks = `/proc/${pid}/task`;
  const threads = existsSync(tasks) ? readdirSync(tasks) : [];
  return threads.flatMap((thread) =>
    readFileSync(join(tasks, thread, 'children'), 'utf8')
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended with its parent.
  }
}
