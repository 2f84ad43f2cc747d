import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { onTestFailed, onTestFinished } from 'vitest';
import { COMPILED, MAIN, NODE_FLAGS } from './main-file.ts';

type StartOptions = {
  /** A command that starts what follows it in its own way: ['prlimit', '--nofile=64']. It must become that process. */
  through?: readonly string[];
  /** For node itself, before the file that is run. */
  nodeOptions?: readonly string[];
  env?: Readonly<Record<string, string>>;
};

export type LogLine = { event?: string; level?: number | string; [field: string]: unknown };

const SHOWN_LINES = 20;
const SHOWN_CHARS = 300;

/** `dawatch …` as its users start it, in a process that can be killed and started again; gone when the test ends. */
export function killableProcess(args: readonly string[]) {
  let child: ChildProcess | undefined;
  const lines: string[] = [];
  const isGone = () => !child || child.exitCode !== null || child.signalCode !== null;
  const end = async (signal: NodeJS.Signals) => {
    if (!child || isGone()) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  onTestFinished(() => end('SIGKILL'));
  onTestFailed(() => {
    const last = lines.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARS));
    if (last.length > 0) console.log(`${args[0]} said last:\n${last.join('\n')}`);
  });
  return {
    /** What it said on standard output, over all its lives. */
    lines,
    /** Those of its log lines that have this name. */
    logged: (event: string): LogLine[] => lines.flatMap(parsed).filter((line) => line.event === event),
    pid: () => child?.pid,
    isGone,
    start({ through = [], nodeOptions = [], env = {} }: StartOptions = {}): void {
      const [command = '', ...rest] = [...through, process.execPath, ...NODE_FLAGS, ...nodeOptions, MAIN, ...args];
      child = spawn(command, rest, {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env.PATH, ...COMPILED, ...env },
      });
      for (const stream of [child.stdout, child.stderr])
        if (stream) createInterface(stream).on('line', (line) => lines.push(line));
    },
    /** SIGKILL, which also ends one that stands still. */
    kill: () => end('SIGKILL'),
    /** SIGTERM. Resolves when it is gone, with its exit code. */
    async stop(): Promise<number | null | undefined> {
      await end('SIGTERM');
      return child?.exitCode;
    },
    /** Resolves when it ended by itself, with its exit code. */
    async exited(): Promise<number | null | undefined> {
      if (child && !isGone()) await once(child, 'exit');
      return child?.exitCode;
    },
    /** It stands still in whatever it does, and keeps what it holds. */
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    /** Memory it holds now; undefined where the system doesn't say. */
    residentMiB: () => residentMiB(child?.pid),
  };
}

function parsed(line: string): LogLine[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

function residentMiB(pid: number | undefined): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1_024;
  } catch {
    return undefined;
  }
}
