import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../support/temp-folder.ts';
import { SimulatedDisk } from './simulated-disk.ts';

it('a synced file is safe, also if its inode was that of a deleted folder', () => {
  const disk = new SimulatedDisk('/root');
  const [folder, inode] = [1n, 7n];
  disk.apply({ kind: 'opened', inode: folder, path: '/root', isFolder: true });
  disk.apply({ kind: 'opened', inode, path: '/root/staging', isFolder: true });
  disk.apply({ kind: 'opened', inode, path: '/root/file', isFolder: false });
  disk.apply({ kind: 'written', inode, offset: 0, data: Buffer.from('acknowledged') });
  for (const [number, synced] of [inode, folder].entries()) {
    disk.apply({ kind: 'sync_begun', inode: synced, number });
    disk.apply({ kind: 'synced', inode: synced, number });
  }
  const image = tempFolder();
  disk.writeImage(image, () => 0);
  expect(readFileSync(join(image, 'file'), 'utf8')).toBe('acknowledged');
});

it('what was written before a failed sync is lost, although a later one succeeds', () => {
  const disk = new SimulatedDisk('/root');
  const inode = 7n;
  disk.apply({ kind: 'opened', inode, path: '/root/file', isFolder: false });
  const write = (offset: number, text: string) =>
    disk.apply({ kind: 'written', inode, offset, data: Buffer.from(text) });
  const sync = (number: number, end: 'synced' | 'sync_failed') => {
    disk.apply({ kind: 'sync_begun', inode, number });
    disk.apply({ kind: end, inode, number });
  };
  write(0, 'safe ');
  sync(1, 'synced');
  write(5, 'lost ');
  sync(2, 'sync_failed');
  write(10, 'later');
  sync(3, 'synced');
  const image = tempFolder();
  disk.writeAll(image);
  expect(readFileSync(join(image, 'file'), 'latin1')).toBe('safe \0\0\0\0\0later');
});

it('a file that shrinks and grows again has zeros where it was cut', () => {
  const disk = new SimulatedDisk('/root');
  const inode = 7n;
  disk.apply({ kind: 'opened', inode, path: '/root/file', isFolder: false });
  disk.apply({ kind: 'written', inode, offset: 0, data: Buffer.from('precious') });
  disk.apply({ kind: 'truncated', inode, size: 3 });
  disk.apply({ kind: 'truncated', inode, size: 5 });
  disk.apply({ kind: 'written', inode, offset: 6, data: Buffer.from('later') });
  const image = tempFolder();
  disk.writeAll(image);
  expect(readFileSync(join(image, 'file'), 'latin1')).toBe('pre\0\0\0later');
});
