import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { StorageChange } from './storage-log.ts';

type FileChange = Extract<StorageChange, { kind: 'written' | 'truncated' }>;
/** A write that a failed sync has lost. */
const LOST = { kind: 'lost' } as const;
type UnsafeChange = FileChange | typeof LOST;
/** `number`: counts the changes of names. */
type NameChange = { number: number; path: string; file: SimulatedFile | undefined };

/** The sizes in which disks write without tearing. */
const SECTOR_BYTES = [512, 4_096] as const;

/** What survives of the changes that were not synced: none, all, or each with this probability. */
const SHARES = [0, 0.1, 0.5, 0.9, 1] as const;

/**
 * A folder on a disk that loses power. What was written to a file before a sync of the file began
 * is safe when it ends; its name is safe after a sync of its folder. Of what is not safe, an image
 * contains any subset of the sectors that were written, in any order, and the names as they were at
 * some moment since the last sync of their folder: file systems with a journal keep the order of
 * names.
 *
 * A failed sync loses what was written to its file and is not safe, also if later syncs succeed:
 * Linux marks pages as clean that it could not write.
 */
export class SimulatedDisk {
  readonly #root: string;
  /** By path, as a process sees them. */
  readonly #names = new Map<string, SimulatedFile>();
  /** By path, after a loss of power. */
  readonly #safeNames = new Map<string, SimulatedFile>();
  #unsafeNames: NameChange[] = [];
  #nameChanges = 0;
  /**
   * By the number of a sync: how many changes there were of the file, or of names, when it began.
   */
  readonly #begunSyncs = new Map<number, number>();
  readonly #byInode = new Map<bigint, SimulatedFile>();
  readonly #folders = new Map<bigint, string>();
  readonly #ignoresSyncs: boolean;

  /**
   * `ignoresSyncs`: nothing becomes safe. Such a disk must lose data, or the test proves nothing.
   */
  constructor(root: string, { ignoresSyncs = false } = {}) {
    this.#root = root;
    this.#ignoresSyncs = ignoresSyncs;
  }

  apply(change: StorageChange): void {
    switch (change.kind) {
      case 'opened':
        this.#open(change);
        break;
      case 'written':
      case 'truncated':
        this.#fileOf(change.inode)?.change(change);
        break;
      case 'sync_begun':
        this.#begunSyncs.set(
          change.number,
          this.#fileOf(change.inode)?.changes ?? this.#nameChanges,
        );
        break;
      case 'synced':
        if (!this.#ignoresSyncs) this.#sync(change);
        break;
      case 'sync_failed':
        this.#fileOf(change.inode)?.lose();
        break;
      case 'renamed':
      case 'linked': {
        const file = this.#names.get(change.from);
        // Folders have no content of their own.
        if (!file) break;
        this.#name(change.to, file);
        if (change.kind === 'renamed') this.#name(change.from, undefined);
        break;
      }
      case 'unlinked':
        if (this.#names.has(change.path)) this.#name(change.path, undefined);
        break;
      default:
        change satisfies never;
    }
  }

  /**
   * Writes what a loss of power may leave into an empty folder. `random` returns numbers from 0 to
   * 1, without 1.
   */
  writeImage(folder: string, random: () => number): void {
    const pick = <T>(choices: readonly T[]) => choices[Math.floor(random() * choices.length)] as T;
    const [share, sectorBytes] = [pick(SHARES), pick(SECTOR_BYTES)];
    const names = new Map(this.#safeNames);
    const kept =
      share === 1
        ? this.#unsafeNames.length
        : Math.floor(random() * (this.#unsafeNames.length + 1));
    for (const { path, file } of this.#unsafeNames.slice(0, share === 0 ? 0 : kept))
      setName(names, path, file);
    const survives = () => random() < share;
    for (const [path, file] of names)
      write(folder, relative(this.#root, path), file.image(survives, sectorBytes));
  }

  /**
   * Writes everything that is not lost, safe or not: what processes see after the present ones have
   * ended.
   */
  writeAll(folder: string): void {
    for (const [path, file] of this.#names)
      write(
        folder,
        relative(this.#root, path),
        file.image(() => true, 4_096),
      );
  }

  #open({ inode, path, isFolder }: Extract<StorageChange, { kind: 'opened' }>): void {
    // An inode is used again after its file or folder is deleted.
    if (isFolder) {
      this.#byInode.delete(inode);
      this.#folders.set(inode, path);
      return;
    }
    this.#folders.delete(inode);
    if (this.#names.get(path) && this.#names.get(path) === this.#byInode.get(inode)) return;
    const file = new SimulatedFile();
    this.#byInode.set(inode, file);
    this.#name(path, file);
  }

  #fileOf(inode: bigint): SimulatedFile | undefined {
    return this.#byInode.get(inode);
  }

  #name(path: string, file: SimulatedFile | undefined): void {
    setName(this.#names, path, file);
    this.#nameChanges += 1;
    this.#unsafeNames.push({ number: this.#nameChanges, path, file });
  }

  #sync({ inode, number }: { inode: bigint; number: number }): void {
    const covered = this.#begunSyncs.get(number) ?? 0;
    const folder = this.#folders.get(inode);
    if (folder === undefined) {
      this.#fileOf(inode)?.sync(covered);
      return;
    }
    const isCovered = (change: NameChange) =>
      change.number <= covered && dirname(change.path) === folder;
    for (const change of this.#unsafeNames)
      if (isCovered(change)) setName(this.#safeNames, change.path, change.file);
    this.#unsafeNames = this.#unsafeNames.filter((change) => !isCovered(change));
  }
}

/** The content of a file: what is safe, and the changes since. */
class SimulatedFile {
  #safe = Buffer.from(new ArrayBuffer(0));
  #unsafe: UnsafeChange[] = [];
  #safeChanges = 0;

  /** How many changes there have been. */
  get changes(): number {
    return this.#safeChanges + this.#unsafe.length;
  }

  change(change: FileChange): void {
    this.#unsafe.push(change);
  }

  /** Makes the first `covered` of all changes safe. */
  sync(covered: number): void {
    const synced = this.#unsafe.splice(0, Math.max(0, covered - this.#safeChanges));
    for (const change of synced) this.#safe = changed(this.#safe, change);
    this.#safeChanges += synced.length;
  }

  /** Loses what was written and is not safe. */
  lose(): void {
    this.#unsafe = this.#unsafe.map((change) => (change.kind === 'written' ? LOST : change));
  }

  image(survives: () => boolean, sectorBytes: number): Buffer {
    let content = Buffer.from(new Uint8Array(this.#safe).buffer);
    for (const change of this.#unsafe)
      for (const part of partsOf(change, sectorBytes))
        if (survives()) content = changed(content, part);
    return content;
  }
}

/** Changes the content in place if it has room. */
function changed(content: Buffer<ArrayBuffer>, change: UnsafeChange): Buffer<ArrayBuffer> {
  if (change.kind === 'lost') return content;
  if (change.kind === 'truncated') return resized(content, change.size);
  const { offset, data } = change;
  const result =
    content.length < offset + data.length ? resized(content, offset + data.length) : content;
  data.copy(result, offset);
  return result;
}

/** Splits a write at the borders of sectors; a sector is written as a whole or not at all. */
function* partsOf(change: UnsafeChange, sectorBytes: number): Generator<UnsafeChange> {
  if (change.kind !== 'written') {
    yield change;
    return;
  }
  const { data, offset } = change;
  for (let at = 0; at < data.length; ) {
    const bytes = Math.min(data.length - at, sectorBytes - ((offset + at) % sectorBytes));
    yield { ...change, offset: offset + at, data: data.subarray(at, at + bytes) };
    at += bytes;
  }
}

/** Leaves room behind the content, because logs grow by one transaction at a time. */
function resized(
  { buffer, byteOffset, length }: Buffer<ArrayBuffer>,
  size: number,
): Buffer<ArrayBuffer> {
  const known = new Uint8Array(buffer, byteOffset, Math.min(length, size));
  const target = byteOffset === 0 && size <= buffer.byteLength ? buffer : new ArrayBuffer(2 * size);
  if (target !== buffer) new Uint8Array(target).set(known);
  else if (size > length) new Uint8Array(target).fill(0, length, size);
  return Buffer.from(target, 0, size);
}

function setName(
  names: Map<string, SimulatedFile>,
  path: string,
  file: SimulatedFile | undefined,
): void {
  if (file) names.set(path, file);
  else names.delete(path);
}

function write(folder: string, name: string, content: Buffer): void {
  const path = join(folder, name);
  // SQLite builds this index of the WAL anew.
  if (name.endsWith('-shm')) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, content, { mode: 0o600 });
}
