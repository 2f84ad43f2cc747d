import { z } from 'zod';
import { DamagedRowError, isObject, isSameJson, parseStored } from '../lib/json.ts';
import {
  byKey,
  byName,
  type OptionChanges,
  type Submission,
  TEXT_OPTIONS,
  type TextFields,
  TRACK_OPTIONS,
  type TrackOption,
  type TrackRequest,
  textsOf,
} from './submission.ts';

const pair = <T extends z.ZodType>(value: T) => z.tuple([value, value]).optional();

/** Passed through unchanged, because a copy made by zod would drop a key such as __proto__. */
const metadataSchema = z.custom<Record<string, unknown> | null>(
  (value) => value === null || isObject(value),
);

const changesSchema: z.ZodType<OptionChanges> = z.object({
  trackedAt: pair(z.number()),
  deadlineAt: pair(z.number()),
  unknownGraceMs: pair(z.number()),
  stuckAfterMs: pair(z.number()),
  metadata: pair(metadataSchema),
  callbackOrigin: pair(z.string().nullable()),
  ...byKey(() => pair(z.string().nullable())),
});

/** New values of options. Times are epoch milliseconds; durations begin when tracking does. */
export type OptionsPatch = {
  deadlineAt?: number;
  unknownGraceMs?: number;
  stuckAfterMs?: number;
  metadata?: Record<string, unknown> | null;
  callbackUrl?: string | null;
} & Partial<TextFields>;

/** The options that only an open submission can change. */
export const TIME_LIMITS = [
  'deadlineAt',
  'unknownGraceMs',
  'stuckAfterMs',
] as const satisfies (keyof OptionsPatch)[];

export function withOptions(before: Submission, patch: OptionsPatch, now: number): Submission {
  const { unknownGraceMs, stuckAfterMs, ...others } = patch;
  const after = { ...before, ...others };
  // The verdict was about other data: it is verified again.
  if (after.dataHash !== before.dataHash && before.chain !== null)
    Object.assign(after, {
      chain: 'unavailable',
      chainReason: 'data_hash was changed',
      proof: null,
    });
  if (unknownGraceMs !== undefined) after.graceEndsAt = before.trackedAt + unknownGraceMs;
  if (stuckAfterMs !== undefined) {
    after.stuckAt = before.trackedAt + stuckAfterMs;
    // A submission that was reported as stuck is reported again if the new time has not passed.
    after.stuck &&= now >= after.stuckAt;
  }
  return after;
}

/** Returns the option that differs from the tracked one without giving way; undefined: none. */
export function conflictBetween(
  known: Pick<Submission, 'upstream' | 'dataHash'>,
  { upstream, dataHash = null }: TrackRequest,
): 'upstream' | 'data_hash' | undefined {
  if (upstream !== known.upstream) return 'upstream';
  const isOtherData = dataHash !== null && known.dataHash !== null && dataHash !== known.dataHash;
  return isOtherData ? 'data_hash' : undefined;
}

export function changesBetween(before: Submission, after: Submission): OptionChanges | null {
  const [old, now] = [timesOf(before), timesOf(after)];
  const changes: OptionChanges = {};
  for (const name of Object.keys(old) as (keyof typeof old)[])
    if (old[name] !== now[name]) changes[name] = [old[name], now[name]];
  if (!isSameJson(before.metadata, after.metadata))
    changes.metadata = [before.metadata, after.metadata];
  // The URLs may differ only in their paths, which are not stored.
  if (before.callbackUrl !== after.callbackUrl)
    changes.callbackOrigin = [originOf(before.callbackUrl), originOf(after.callbackUrl)];
  for (const { key } of TEXT_OPTIONS)
    if (before[key] !== after[key]) changes[key] = [before[key], after[key]];
  return Object.keys(changes).length === 0 ? null : changes;
}

export function changedOptions(changes: OptionChanges): TrackOption[] {
  const changed: Record<TrackOption, unknown> = {
    deadline: changes.deadlineAt,
    unknown_grace_s: changes.unknownGraceMs,
    stuck_after_s: changes.stuckAfterMs,
    metadata: changes.metadata,
    callback_url: changes.callbackOrigin,
    ...byName(({ key }) => changes[key]),
  };
  return TRACK_OPTIONS.filter((option) => changed[option] !== undefined);
}

/** Returns the options that the request names with values other than those of the submission. */
export function otherOptions(
  tracked: Submission,
  request: TrackRequest,
  now: number,
): TrackOption[] {
  const { metadata, callbackUrl, trackedAt = now, named = [] } = request;
  const options = { metadata, callbackUrl, trackedAt, ...textsOf(request) };
  const wanted = { ...tracked, ...options, ...limitsFrom(request, now) };
  const others = changedOptions(changesBetween(tracked, wanted) ?? {});
  return others.filter((option) => named.includes(option));
}

/** Returns stored changes. Throws DamagedRowError. */
export function readChanges(text: string): OptionChanges {
  const row = 'a row of the history';
  const parsed = changesSchema.safeParse(parseStored(text, row, 'changes'));
  if (!parsed.success) throw new DamagedRowError(row, 'changes');
  return parsed.data;
}

/** Returns the options before these stored changes, the oldest first. */
export function optionsBefore(stored: readonly string[]) {
  const before: { trackedAt?: number; deadlineAt?: number; metadata?: string | null } = {};
  for (const text of stored.toReversed()) {
    const { trackedAt, deadlineAt, metadata } = readChanges(text);
    if (trackedAt) before.trackedAt = trackedAt[0];
    if (deadlineAt) before.deadlineAt = deadlineAt[0];
    if (metadata) before.metadata = metadata[0] && JSON.stringify(metadata[0]);
  }
  return before;
}

/** A default deadline counts from the commit; so do other limits, unless `trackedAt` is set. */
export function limitsFrom(request: TrackRequest, now: number) {
  const { deadlineAt, graceEndsAt, stuckAt, requestedAt = now, trackedAt, named = [] } = request;
  const queuedMs = now - requestedAt;
  const beginsLaterMs = trackedAt === undefined ? queuedMs : 0;
  return {
    deadlineAt: named.includes('deadline') ? deadlineAt : deadlineAt + queuedMs,
    graceEndsAt: graceEndsAt + beginsLaterMs,
    stuckAt: stuckAt + beginsLaterMs,
  };
}

/** Durations from the beginning of tracking, in milliseconds. */
export function durationsOf({
  trackedAt,
  graceEndsAt,
  stuckAt,
}: Pick<Submission, 'trackedAt' | 'graceEndsAt' | 'stuckAt'>) {
  return { unknownGraceMs: graceEndsAt - trackedAt, stuckAfterMs: stuckAt - trackedAt };
}

/** Returns scheme, host and port of a URL; null if there is none or it is invalid. */
export function originOf(url: string | null): string | null {
  return url === null ? null : (URL.parse(url)?.origin ?? null);
}

function timesOf(submission: Submission) {
  const { trackedAt, deadlineAt } = submission;
  return { trackedAt, deadlineAt, ...durationsOf(submission) };
}
