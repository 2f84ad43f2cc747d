import { once } from 'node:events';
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { CommandError, ExitCode } from './exit.ts';

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
  refuseExisting(file);
  // Of this process alone: another export to the same name must not take this half for its own.
  const partial = `${file}.${process.pid}.partial`;
  const failed = (error: unknown) =>
    new CommandError(`can't write ${file}: ${error instanceof Error ? error.message : error}`, ExitCode.usage);
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw failed(error);
    }
  };
  const descriptor = attempt(() => {
    rmSync(partial, { force: true });
    return openSync(partial, 'wx', 0o600);
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
        fsyncSync(descriptor);
        close();
      });
      refuseExisting(file);
      attempt(() => renameSync(partial, file));
    },
    abandon() {
      close();
      rmSync(partial, { force: true });
    },
  };
}

function refuseExisting(file: string): void {
  if (existsSync(file)) throw new CommandError(`${file} exists already: it was left as it is`, ExitCode.usage);
}
