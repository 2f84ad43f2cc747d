import { Readable, Writable } from 'node:stream';
import { run } from '../../../src/cli/program.ts';

type Environment = { env: Record<string, string>; input: string; cwd: string };

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command within this process, with replaced streams and variables: only one command at a
 * time.
 */
export function runHere(args: readonly string[], environment: Environment) {
  const ended = last.then(() => runAlone(args, environment));
  last = ended.catch(() => undefined);
  return ended;
}

async function runAlone(args: readonly string[], { env, input, cwd }: Environment) {
  const [stdout, stderr] = [new Captured(), new Captured()];
  const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]);
  const restorers = [
    override('stdin', stdin),
    override('stdout', stdout),
    override('stderr', stderr),
    override('env', env),
  ];
  const before = { folder: process.cwd(), exitCode: process.exitCode };
  try {
    process.chdir(cwd);
    process.exitCode = undefined;
    const exitCode = await run(args);
    return {
      code: exitCode ?? Number(process.exitCode ?? 0),
      stdout: stdout.text(),
      stderr: stderr.text(),
    };
  } finally {
    process.exitCode = before.exitCode;
    process.chdir(before.folder);
    for (const back of restorers) back();
  }
}

/** Returns a function that restores the previous value. */
function override(name: 'stdin' | 'stdout' | 'stderr' | 'env', value: unknown): () => void {
  const own = Object.getOwnPropertyDescriptor(process, name) ?? {};
  Object.defineProperty(process, name, { value, configurable: true, enumerable: true });
  return () => Object.defineProperty(process, name, own);
}

/** Collects output; not a terminal. */
class Captured extends Writable {
  readonly #chunks: Buffer[] = [];
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
  text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}
