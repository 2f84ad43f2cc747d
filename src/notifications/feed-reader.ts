import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { EventFilter } from './event-filter.ts';
import type { FeedLog } from './event-log.ts';
import { FeedPage, gapFrame } from './feed-page.ts';

/** A reader with more waiting bytes, which is more than most pages, is no longer live. */
const MAX_WAITING_BYTES = 512 * 1024;
/** Events read from the log at once for a reader that is catching up. */
const PAGE = 100;

/** Returns a frame without data that updates the position from which a client resumes. */
function positionFrame(comment: string, position: number): string {
  return `: ${comment}\nid: ${position}\n\n`;
}

export type FeedReaderOptions = {
  log: FeedLog;
  /** Number of the last event the client has. */
  position: number;
  filter: EventFilter;
  response: ServerResponse;
  /** Whether the credential is still valid. */
  mayRead: () => boolean;
  /** Called when the reader has every committed event and becomes live. */
  onCaughtUp: (reader: FeedReader) => void;
  onFailed: (error: unknown) => void;
};

/**
 * One reader of the live feed; the stream is the body of its response.
 *
 * A reader starts in catch-up: it reads pages from the log as fast as its client accepts them. When
 * a page is empty it becomes live, and `send` delivers new events. Both happen in one synchronous
 * step, so no event is skipped or repeated. A live reader with too many waiting bytes returns to
 * catch-up, which limits memory to about one page per reader.
 */
export class FeedReader extends Readable {
  readonly #options: FeedReaderOptions;
  #position: number;
  #isLive = false;
  #isScheduled = false;
  #isEnded = false;
  #hasRead = true;
  #reportedGap = 0;

  constructor(options: FeedReaderOptions) {
    super({ highWaterMark: 16 * 1024 });
    this.#options = options;
    this.#position = options.position;
    this.push(positionFrame('dawatch', this.#position));
  }

  /** Number of the last event that was sent or filtered out. */
  get position(): number {
    return this.#position;
  }

  get waitingBytes(): number {
    return this.readableLength + this.#options.response.writableLength;
  }

  /**
   * Sends new events to a live reader. Returns false if the client reads too slowly; the reader
   * then catches up by itself.
   */
  send(page: FeedPage): boolean {
    if (this.#isEnded || page.position <= this.#position) return true;
    const bytes = page.bytesFor(this.#position, this.#options.filter);
    if (bytes) this.push(bytes);
    this.#position = page.position;
    this.#isLive = this.waitingBytes <= MAX_WAITING_BYTES;
    return this.#isLive;
  }

  /**
   * Sends a heartbeat, and ends the stream if the credential is no longer valid. Returns false if
   * the client was disconnected, because it has read nothing since the last heartbeat although data
   * is waiting.
   */
  heartbeat(): boolean {
    if (this.#isEnded) return true;
    if (!this.#mayRead()) this.end();
    else if (this.waitingBytes === 0) this.push(positionFrame('heartbeat', this.#position));
    else if (!this.#hasRead) return this.#drop();
    this.#hasRead = false;
    return true;
  }

  /** Ends the stream, and destroys it if data is still waiting. */
  end(): void {
    if (this.#isEnded) return;
    if (this.waitingBytes > 0) this.#drop();
    else this.push(null);
    this.#isEnded = true;
  }

  override _read(): void {
    this.#hasRead = true;
    if (!this.#isLive) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.destroyed || this.#isEnded) return;
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
    this.#reportGap(log.missingThrough());
    const page = new FeedPage(this.#position);
    page.add(log.after(this.#position, PAGE));
    if (page.size === 0) {
      // A client that resumes from here does not need the same gap again.
      this.#position = Math.max(this.#position, this.#reportedGap);
      this.#isLive = true;
      onCaughtUp(this);
      return;
    }
    const bytes = page.bytesFor(this.#position, filter);
    this.#position = page.position;
    if (!bytes || this.push(bytes)) this.#schedule();
  }

  /** Reports missing events, and reports them again if pruning removes more during catch-up. */
  #reportGap(through: number): void {
    if (through <= this.#position || through <= this.#reportedGap) return;
    this.#reportedGap = through;
    this.push(gapFrame({ after: this.#position, through }, this.#position));
  }

  /** Returns false if the ledger cannot be read, too: a client that reconnects gets the problem. */
  #mayRead(): boolean {
    try {
      return this.#options.mayRead();
    } catch (error) {
      this.#options.onFailed(error);
      return false;
    }
  }

  #drop(): false {
    this.#isEnded = true;
    this.#options.response.destroy();
    return false;
  }
}
