import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { killableProcess } from './killable-process.ts';
import { compile } from './main-file.ts';

/** A worker in a process that can be killed and started again; killed when the test ends. */
export function prepareWorker(folder: string, name: string, settings: Record<string, unknown>) {
  const config = join(folder, `${name}.yaml`);
  const own = { log: { level: 'silent' } };
  writeFileSync(config, JSON.stringify({ ...own, ...settings }));
  compile('worker', folder);
  return killableProcess(['worker', '--config', config]);
}
