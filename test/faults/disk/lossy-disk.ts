import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRecorder } from '../power-loss/recorder.ts';
import { SimulatedDisk } from '../power-loss/simulated-disk.ts';
import { readStorageLog } from '../power-loss/storage-log.ts';
import { openFaultyDisk } from './faulty-disk.ts';

/**
 * A faulty disk below `root`, a new folder in `folder`, that loses what it failed to sync: Linux
 * marks such pages as clean, and may drop them. The processes that run still see them.
 */
export function openLossyDisk(folder: string) {
  const { root, log, env } = openRecorder(folder);
  const disk = openFaultyDisk(folder, root);
  return {
    ...disk,
    root,
    /** The recorder is first, and records which syncs fail. */
    env: { ...env, ...disk.env, LD_PRELOAD: `${env.LD_PRELOAD}:${disk.env.LD_PRELOAD}` },
    /**
     * Removes from the files what failed syncs have lost. Returns the names of those that change.
     * No process may use them.
     */
    drop(): string[] {
      const simulated = new SimulatedDisk(root);
      for (const { change } of readStorageLog(log)) simulated.apply(change);
      const before = readdirSync(root).map((name) => ({
        name,
        content: readFileSync(join(root, name)),
      }));
      simulated.writeAll(root);
      return before
        .filter(({ name, content }) => !readFileSync(join(root, name)).equals(content))
        .map(({ name }) => name);
    },
  };
}
