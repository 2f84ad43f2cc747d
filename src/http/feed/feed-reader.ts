import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { ReportUnreadable } from '../../domain/stored.ts';
import type { EventLog } from '../ports.ts';
import type { EventFilter } from './event-filter.ts';
import { FeedPage, gapFrame } from './feed-page.ts';

/** With so much waiting, more than a page mostly is, a reader counts as behind: what comes then stays in the log until it has taken that. */
const MAX_WAITING_BYTES = 512 * 1024;
/** Events that are read at once for a reader that is behind; then others have their turn. */
const PAGE = 100;

/** A position without an event: who is cut off from here on resumes without a gap. */
function positionFrame(comment: string, position: number): string {
  return `: ${comment}\nid: ${position}\n\n`;
}

export type FeedReaderOptions = {
  log: EventLog;
  /** The newest event that it has. */
  position: number;
  filter: EventFilter;
  response: ServerResponse;
  /** Whether its credential still holds. */
  mayRead: () => boolean;
  /** It has everything that is committed by now, and must be told of what comes from now on. */
  onCaughtUp: (reader: FeedReader) => void;
  onFailed: (error: unknown) => void;
  onUnreadable: ReportUnreadable;
};

/**
 * One reader of the live feed, as the body of its response.
 *
 * It begins behind: reads pages from the log as fast as its client takes them. Once a page is empty it is live, and is
 * told what is new. Between the empty page and being live nothing else runs, so there is no gap and no repeat. If too
 * much waits for its client it is behind again: memory holds a page at most, the log the rest.
 */
export class FeedReader extends Readable {
  readonly #options: FeedReaderOptions;
  #position: number;
  #isLive = false;
  #isScheduled = false;
  #isOver = false;
  #tookSomething = true;
  #gapTold = 0;

  constructor(options: FeedReaderOptions) {
    super({ highWaterMark: 16 * 1024 });
    this.#options = options;
    this.#position = options.position;
    this.push(positionFrame('dawatch', this.#position));
  }

  /** The newest event that it was told, or that was not for it. */
  get position(): number {
    return this.#position;
  }

  get waitingBytes(): number {
    return this.readableLength + this.#options.response.writableLength;
  }

  /** What is new. False: its client reads too slowly for it to be live; it is behind again, and catches up by itself. */
  send(page: FeedPage): boolean {
    if (this.#isOver || page.position <= this.#position) return true;
    const bytes = page.bytesFor(this.#position, this.#options.filter);
    if (bytes) this.push(bytes);
    this.#position = page.position;
    this.#isLive = this.waitingBytes <= MAX_WAITING_BYTES;
    return this.#isLive;
  }

  /**
   * Shows the client, and everything in between, that the connection lives. False: it took nothing since the last beat
   * although something waits for it, and was hung up on; it can resume where it was.
   */
  heartbeat(): boolean {
    if (this.#isOver) return true;
    if (!this.#mayRead()) this.end();
    else if (this.waitingBytes === 0) this.push(positionFrame('heartbeat', this.#position));
    else if (!this.#tookSomething) return this.#drop();
    this.#tookSomething = false;
    return true;
  }

  /** Ends the stream; at once if its client doesn't read. */
  end(): void {
    if (this.#isOver) return;
    if (this.waitingBytes > 0) this.#drop();
    else this.push(null);
    this.#isOver = true;
  }

  override _read(): void {
    this.#tookSomething = true;
    if (!this.#isLive) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.destroyed || this.#isOver) return;
      try {
        this.#readPage();
      } catch (error) {
        this.#drop();
        this.#options.onFailed(error);
      }
    });
  }

  #readPage(): void {
    const { log, filter, onCaughtUp } = this.#options;
    this.#tellOfGap(log.missingThrough());
    const page = new FeedPage(this.#position, this.#options.onUnreadable);
    page.add(log.after(this.#position, PAGE));
    if (page.size === 0) {
      // Nothing is left of what is missing: who resumes from here need not hear of it again.
      this.#position = Math.max(this.#position, this.#gapTold);
      this.#isLive = true;
      onCaughtUp(this);
      return;
    }
    const bytes = page.bytesFor(this.#position, filter);
    this.#position = page.position;
    if (!bytes || this.push(bytes)) this.#schedule();
  }

  /** What is missing may become more while it reads: then it is told again. */
  #tellOfGap(through: number): void {
    if (through <= this.#position || through <= this.#gapTold) return;
    this.#gapTold = through;
    this.push(gapFrame({ after: this.#position, through }, this.#position));
  }

  /** False also where the ledger cannot be read: the stream ends, and a client that reconnects is told why. */
  #mayRead(): boolean {
    try {
      return this.#options.mayRead();
    } catch (error) {
      this.#options.onFailed(error);
      return false;
    }
  }

  #drop(): false {
    this.#isOver = true;
    this.#options.response.destroy();
    return false;
  }
}
