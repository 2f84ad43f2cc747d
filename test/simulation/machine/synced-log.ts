import { closeSync, fstatSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import type { Random } from './random.ts';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** As in test/faults/power-loss/simulated-disk.ts. */
const SECTOR_BYTES = [512, 4_096] as const;
const SHARES = [0, 0.1, 0.5, 0.9, 1] as const;

/**
 * What was written since the last sync: frames, and the header if the log was begun again.
 * `fileBytes`: the size of the log.
 */
type Written = { from: number; data: Buffer; fileBytes: number };

/**
 * What is on the disk of the write-ahead log of one ledger. A loss of power keeps it, and any
 * subset of the sectors that were written since. SQLite itself syncs the log before each
 * checkpoint, and the header of a log that it begins again before the frames.
 */
export class SyncedLog {
  readonly path: string;
  /** The inode of its ledger. */
  readonly ledger: number | undefined;
  /** Has room at its end. */
  #content = Buffer.alloc(0);
  #bytes = 0;
  /** The end of the frames of the log. Those from before it was begun again may follow. */
  #end = 0;

  constructor(path: string, ledger?: number) {
    this.path = path;
    this.ledger = ledger;
  }

  sync(): void {
    const fd = openSync(this.path, 'r');
    const written = this.#read(fd);
    closeSync(fd);
    this.#cut(written.fileBytes);
    this.#write(written, written.from, written.from + written.data.length);
    this.#end = written.from + written.data.length;
  }

  /** Replaces a copy of the log, and that of its ledger, by what a loss of power leaves. */
  losePower(log: string, ledger: string, random: Random): void {
    const [share, sectorBytes] = [random.pick(SHARES), random.pick(SECTOR_BYTES)];
    const survives = () => random.next() < share;
    if (random.chance(0.5)) this.#copyPart(ledger, sectorBytes, survives);
    const fd = openSync(log, 'r');
    const written = this.#read(fd);
    closeSync(fd);
    this.#cut(written.fileBytes);
    const { from, data } = written;
    if (from === 0) {
      this.#end = Math.min(HEADER_BYTES, data.length);
      this.#write(written, 0, this.#end);
    }
    for (const [at, to] of sectorsOf(from, from + data.length, sectorBytes))
      if (survives()) this.#write(written, at, to);
    writeFileSync(log, this.#content.subarray(0, this.#bytes));
  }

  /**
   * A checkpoint was running: it had synced the log, and has copied some sectors of its newest
   * pages to the ledger.
   */
  #copyPart(ledger: string, sectorBytes: number, survives: () => boolean): void {
    if (this.#end <= HEADER_BYTES) return;
    const frameBytes = frameBytesOf(this.#content);
    const frames = new Map<number, number>();
    for (let at = HEADER_BYTES; at < this.#end; at += frameBytes)
      frames.set(this.#content.readUInt32BE(at), at);
    const pages = this.#content.readUInt32BE(this.#end - frameBytes + 4);
    const pageBytes = frameBytes - FRAME_HEADER_BYTES;
    const fd = openSync(ledger, 'r+');
    for (const [page, frame] of frames) {
      if (page > pages) continue;
      const content = frame + FRAME_HEADER_BYTES;
      const offset = (page - 1) * pageBytes;
      for (const [at, to] of sectorsOf(0, pageBytes, sectorBytes))
        if (survives()) writeSync(fd, this.#content, content + at, to - at, offset + at);
    }
    closeSync(fd);
  }

  /** Reads what was written since the last sync. */
  #read(fd: number): Written {
    const { size: fileBytes } = fstatSync(fd);
    const header = readAt(fd, 0, HEADER_BYTES);
    if (header.length < HEADER_BYTES) return { from: 0, data: header, fileBytes };
    // The salts in bytes 16 to 23 differ from those of the log before it was begun again, as in
    // bytes 8 to 15 of each frame.
    const isSame =
      this.#bytes >= HEADER_BYTES && header.compare(this.#content, 16, 24, 16, 24) === 0;
    const parts = isSame ? [] : [header];
    const frameBytes = frameBytesOf(header);
    for (let at = isSame ? this.#end : HEADER_BYTES; ; at += frameBytes) {
      const frame = readAt(fd, at, frameBytes);
      if (frame.length < frameBytes || frame.compare(header, 16, 24, 8, 16) !== 0) break;
      parts.push(frame);
    }
    return { from: isSame ? this.#end : 0, data: Buffer.concat(parts), fileBytes };
  }

  #write({ from, data }: Written, at: number, to: number): void {
    if (to > this.#content.length) {
      const larger = Buffer.alloc(2 * to);
      this.#content.copy(larger, 0, 0, this.#bytes);
      this.#content = larger;
    }
    // A gap was never written.
    if (at > this.#bytes) this.#content.fill(0, this.#bytes, at);
    this.#bytes = Math.max(this.#bytes, to);
    data.copy(this.#content, at, at - from, to - from);
  }

  /** The log was truncated. */
  #cut(bytes: number): void {
    this.#bytes = Math.min(this.#bytes, bytes);
    this.#end = Math.min(this.#end, bytes);
  }
}

/** Splits a range at the borders of sectors. */
function* sectorsOf(
  from: number,
  end: number,
  sectorBytes: number,
): Generator<[at: number, to: number]> {
  for (let at = from; at < end; ) {
    const to = Math.min(end, at + sectorBytes - (at % sectorBytes));
    yield [at, to];
    at = to;
  }
}

function frameBytesOf(header: Buffer): number {
  return FRAME_HEADER_BYTES + header.readUInt32BE(8);
}

/** Returns fewer bytes at the end of the file. */
function readAt(fd: number, at: number, bytes: number): Buffer {
  const data = Buffer.allocUnsafe(bytes);
  return data.subarray(0, readSync(fd, data, 0, bytes, at));
}
