import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { MAIN, NODE_FLAGS } from '../../support/processes/child-process.ts';
import { prepareServer } from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** The program of Litestream 0.3.13, which an npm package contains. */
const LITESTREAM = join(
  import.meta.dirname,
  `../../../node_modules/@flydotio/litestream-${process.platform}-${process.arch}/litestream`,
);

/** For `skipIf`: there is no program for this platform. CI skips nothing. */
export const isLitestreamMissing = process.env.CI === undefined && !existsSync(LITESTREAM);

/**
 * A host with its own disk, which runs the server and Litestream as docs/backup.md describes for
 * plain hosts, with the replica in a folder instead of an object store.
 */
export async function prepareMachine(replicaFolder: string, settings: Record<string, unknown>) {
  const folder = tempFolder();
  const disk = join(folder, 'disk');
  const ledger = join(disk, 'dawatch.db');
  const primary = `${ledger}.primary`;
  mkdirSync(disk);
  const server = await prepareServer(folder, { ...settings, database: ledger });
  const config = join(folder, 'litestream.yml');
  const dbs = [
    { path: ledger, replicas: [{ type: 'file', path: replicaFolder }] },
    { path: primary, replicas: [{ type: 'file', path: join(replicaFolder, 'primary') }] },
  ];
  writeFileSync(config, JSON.stringify({ dbs }));
  const restore = async (...args: string[]) =>
    expect(
      await run(LITESTREAM, ['restore', '-config', config, '-if-replica-exists', ...args]),
    ).toMatchObject({ code: 0 });
  /** Resolves with a copy of what the replica contains now. */
  const replicated = async (file = ledger) => {
    const copy = join(tempFolder(), 'replica.db');
    await restore('-o', copy, file);
    return copy;
  };
  const die = async () => {
    const children = childrenOf(server.pid());
    await server.kill();
    for (const child of children) killIfRunning(child);
  };
  onTestFinished(die);
  return {
    ...server,
    replicated: () => replicated(),
    /** Resolves with a copy of the claim of the primary in the replica. */
    claimed: () => replicated(primary),
    /** Resolves with the end of `serve --check-primary`, which decides whether it may start. */
    async mayStart() {
      const yaml = join(folder, 'dawatch.yaml');
      const claim = await replicated(primary);
      return run(process.execPath, [
        ...NODE_FLAGS,
        MAIN,
        'serve',
        '--check-primary',
        claim,
        '--config',
        yaml,
      ]);
    },
    /**
     * Starts Litestream, and the server through it. Resolves with a copy of the ledger from before;
     * undefined without a replica.
     */
    async start(): Promise<string | undefined> {
      await restore('-if-db-not-exists', ledger);
      expect(await this.mayStart()).toMatchObject({ code: ExitCode.ok });
      const before = existsSync(ledger) ? join(tempFolder(), 'before.db') : undefined;
      if (before !== undefined) copyFileSync(ledger, before);
      const replicate = `exec '${LITESTREAM}' replicate -config '${config}' -exec "$*"`;
      server.start({ through: ['sh', '-c', replicate, 'sh'] });
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
    die,
    /** Returns a copy of the ledger on the disk. */
    copyOfLedger(): string {
      const copy = tempFolder();
      cpSync(disk, copy, { recursive: true });
      return join(copy, basename(ledger));
    },
  };
}

/** Resolves with the exit code and all output of a program. */
function run(program: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { env: { PATH: process.env.PATH } }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, output: stdout + stderr }),
    );
  });
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
