import { once } from 'node:events';
import { closeSync, openSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { LedgerError, toLedgerError } from '../../ledger/file/errors.ts';
import { openStaging, publish, refuseTaken } from '../../ledger/file/staging.ts';
import { CommandError, ExitCode } from '../exit.ts';

/** Where an export goes. `end` once all of it was written, else `abandon`. */
export type ExportTarget = {
  write(text: string): Promise<void> | void;
  end(): void;
  abandon(): void;
};

/** Standard output. Whoever reads it may go first, as `head` does: then there is nothing left to do, and nothing is wrong. */
export function toStdout(stdout: NodeJS.WriteStream): ExportTarget {
  stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`dawatch: can't write the export: ${error.message}\n`);
    process.exit(error.code === 'EPIPE' ? ExitCode.ok : ExitCode.server);
  });
  return {
    async write(text) {
      if (!stdout.write(text)) await once(stdout, 'drain');
    },
    end: () => undefined,
    abandon: () => undefined,
  };
}

/** A file that only its owner may read, and that has its name once it is complete and on the disk. */
export function toFile(file: string): ExportTarget {
  if (file === '') throw new CommandError('--output names no file', ExitCode.usage);
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const known = toLedgerError(file, error);
      if (known instanceof LedgerError) throw new CommandError(known.message, ExitCode.usage);
      throw new CommandError(`can't write ${file}: ${error instanceof Error ? error.message : error}`, ExitCode.usage);
    }
  };
  attempt(() => refuseTaken(file));
  const staging = attempt(() => openStaging(file));
  const descriptor = attempt(() => {
    try {
      return openSync(staging.file, 'wx', 0o600);
    } catch (error) {
      staging.close();
      throw error;
    }
  });
  let isOpen = true;
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    closeSync(descriptor);
  };
  return {
    async write(text) {
      attempt(() => {
        const bytes = Buffer.from(text);
        for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
      });
      // Else nothing would show how far it is, until it is through.
      await setImmediate();
    },
    end() {
      attempt(() => {
        close();
        publish(staging.file, file);
        staging.close();
      });
    },
    abandon() {
      close();
      staging.close();
    },
  };
}
