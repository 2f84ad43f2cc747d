import type { ChannelDescription } from '../notifications/channels-routes.ts';
import type { EventFeed } from '../notifications/event-feed.ts';
import type { RollingHour } from '../operations/metrics/rolling-hour.ts';
import type { CachedLookup } from '../polling/cached-lookup.ts';
import type { Watcher } from '../polling/watcher.ts';
import type { Tracker } from '../submissions/tracker.ts';
import type { Ledger } from './ledger-stores.ts';

/** The services of the routes. */
export type Services = {
  ledger: Ledger;
  watcher: Watcher;
  tracker: Tracker;
  lookup: CachedLookup;
  feed: EventFeed;
  hour: RollingHour;
  /** Returns why a webhook URL is not allowed; undefined if it is. */
  refusalOf: (url: string) => string | undefined;
  /** The setting `server.public_url`. */
  publicUrl: () => string | undefined;
  channels: () => readonly ChannelDescription[];
};
