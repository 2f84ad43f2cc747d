import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProcess } from '../run-process.ts';
import { MUTATIONS, type Mutation } from './mutations.ts';

/** Seeds until a mutation counts as not found, and their virtual days. */
const RUNS = { seeds: [1, 2, 3, 4], days: 6 };
const ROOT = join(import.meta.dirname, '../../..');

/** Runs each mutation in a copy of the code. Returns the names of those that no run found. Throws if a run finds a defect without one. */
export async function findMutations(onResult: (name: string, defect: string | undefined) => void): Promise<string[]> {
  const unmutated = await findIn(ROOT, RUNS);
  if (unmutated !== undefined) throw new Error(`the code has a defect without a mutation: ${unmutated}`);
  const missed: string[] = [];
  const left = [...MUTATIONS];
  const work = async () => {
    for (let mutation = left.shift(); mutation; mutation = left.shift()) {
      const defect = await find(mutation);
      onResult(mutation.name, defect);
      if (defect === undefined) missed.push(mutation.name);
    }
  };
  await Promise.all([work(), work()]);
  return missed;
}

/** Returns the first defect that a run of the mutated code shows; undefined: there is none. */
export async function find(mutation: Mutation, runs = RUNS): Promise<string | undefined> {
  const root = mkdtempSync(join(tmpdir(), 'dawatch-mutation-'));
  try {
    copyCode(root);
    apply(mutation, root);
    return await findIn(root, runs);
  } finally {
    rmSync(root, { recursive: true });
  }
}

async function findIn(root: string, { seeds, days }: typeof RUNS): Promise<string | undefined> {
  for (const seed of seeds) {
    const { defects } = await runProcess({ seed, days, without: new Set() }, root);
    if (defects[0] !== undefined) return `${defects[0]} (seed ${seed})`;
  }
  return undefined;
}

function copyCode(root: string): void {
  for (const path of ['package.json', 'src', 'test/simulation', 'test/support/ledger']) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    cpSync(join(ROOT, path), join(root, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
}

/** Returns the mutated content of its file. Throws unless the text occurs exactly once. */
export function mutate({ name, file, from, to }: Mutation, read: (file: string) => string): string {
  const parts = read(file).split(from);
  if (parts.length !== 2) throw new Error(`${name}: its text occurs ${parts.length - 1} times in ${file}`);
  return parts.join(to);
}

function apply(mutation: Mutation, root: string): void {
  const path = join(root, 'src', mutation.file);
  writeFileSync(
    path,
    mutate(mutation, () => readFileSync(path, 'utf8')),
  );
}
