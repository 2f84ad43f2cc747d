import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProcess } from '../run-process.ts';
import { type Change, MUTATIONS, type Mutation } from './mutations.ts';

/** Seeds until a mutation counts as not found, and their virtual days. */
const RUNS = { seeds: [1, 2, 3, 4], days: 6 };
const WITH_WORKERS = { seeds: [5, 6, 7, 8], days: 2 };
const ROOT = join(import.meta.dirname, '../../..');

/** Runs each mutation in a copy of the code. Returns the names of those that no run found. Throws if a run finds a defect without one. */
export async function findMutations(onResult: (name: string, defect: string | undefined) => void): Promise<string[]> {
  const unmutated = (await findIn(ROOT, RUNS)) ?? (await findIn(ROOT, WITH_WORKERS));
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
export async function find(
  mutation: Mutation,
  runs = mutation.needsWorkers ? WITH_WORKERS : RUNS,
): Promise<string | undefined> {
  const root = mkdtempSync(join(tmpdir(), 'dawatch-mutation-'));
  try {
    copyCode(root);
    for (const change of changesOf(mutation)) apply(change, root);
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

export function changesOf(mutation: Mutation): Change[] {
  return mutation.also ? [mutation, mutation.also] : [mutation];
}

/** Returns the changed content of a file. Throws unless the text occurs exactly once. */
export function changed({ file, from, to }: Change, content: string): string {
  const parts = content.split(from);
  if (parts.length !== 2) throw new Error(`"${from}" occurs ${parts.length - 1} times in ${file}`);
  return parts.join(to);
}

function apply(change: Change, root: string): void {
  const path = join(root, 'src', change.file);
  writeFileSync(path, changed(change, readFileSync(path, 'utf8')));
}
