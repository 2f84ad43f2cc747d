import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The program of Litestream 0.3.13, which an npm package contains. */
const LITESTREAM = join(
  import.meta.dirname,
  `../../../node_modules/@flydotio/litestream-${process.platform}-${process.arch}/litestream`,
);

/** For `skipIf`: there is no program for this platform. CI skips nothing. */
export const isLitestreamMissing = process.env.CI === undefined && !existsSync(LITESTREAM);

/**
 * Litestream as docs/failover.md configures it, with the replica in a folder instead of an object
 * store.
 */
export function replicaOf({
  folder,
  ledger,
  replica,
}: {
  folder: string;
  ledger: string;
  replica: string;
}) {
  const config = join(folder, 'litestream.yml');
  const primary = `${ledger}.primary`;
  const dbs = [
    { path: ledger, replicas: [{ type: 'file', path: replica }] },
    { path: primary, replicas: [{ type: 'file', path: join(replica, 'primary') }] },
  ];
  writeFileSync(config, JSON.stringify({ dbs }));
  const restore = (...args: string[]) =>
    run(LITESTREAM, ['restore', '-config', config, '-if-replica-exists', ...args]);
  return {
    /** Restores the ledger, unless there is one. */
    restoreLedger: () => restore('-if-db-not-exists', ledger),
    /** Restores the current replica of the ledger to another file, which must not exist. */
    copyLedger: (to: string) => restore('-o', to, ledger),
    /** Restores the claim of the primary to another file, which must not exist. */
    copyPrimary: (to: string) => restore('-o', to, primary),
    /** A command that replicates while the command after it runs. */
    through: ['sh', '-c', `exec '${LITESTREAM}' replicate -config '${config}' -exec "$*"`, 'sh'],
  };
}

/** Resolves with the exit code and all output of a program. */
export function run(
  program: string,
  args: readonly string[],
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { env: { PATH: process.env.PATH } }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, output: stdout + stderr }),
    );
  });
}
