import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { LedgerError, toLedgerError } from '../ledger/errors.ts';
import { openStaging, publish, refuseTaken } from '../ledger/staging.ts';
import { CommandError, ExitCode } from './exit.ts';

/** The destination of an export. `end` completes it, `abandon` discards it. */
export type ExportTarget = {
  write(text: string): Promise<void> | void;
  end(): void;
  abandon(): void;
};

/**
 * Returns a target that writes to stdout. Exits successfully if the reader closes the pipe, as
 * `head` does.
 */
export function toStdout(stdout: NodeJS.WriteStream): ExportTarget {
  stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE')
      process.stderr.write(`dawatch: cannot write the export: ${error.message}\n`);
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

/**
 * Bytes after which a file is synced. More would delay what a server reads and syncs on the same
 * disk (see backup.ts).
 */
const SYNC_BYTES = 1024 * 1024;

/**
 * Returns a target that writes a file readable only by its owner. The file gets its name when it is
 * complete and synced.
 */
export function toFile(file: string): ExportTarget {
  if (file === '') throw new CommandError('--output requires a file name', ExitCode.usage);
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const known = toLedgerError(file, error);
      if (known instanceof LedgerError) throw new CommandError(known.message, ExitCode.usage);
      throw new CommandError(
        `cannot write ${file}: ${error instanceof Error ? error.message : error}`,
        ExitCode.usage,
      );
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
  let unsyncedBytes = 0;
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    closeSync(descriptor);
  };
  return {
    async write(text) {
      attempt(() => {
        const bytes = Buffer.from(text);
        for (let written = 0; written < bytes.length; )
          written += writeSync(descriptor, bytes, written);
        unsyncedBytes += bytes.length;
        if (unsyncedBytes < SYNC_BYTES) return;
        unsyncedBytes = 0;
        fdatasyncSync(descriptor);
      });
      // Lets the progress bar redraw.
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
