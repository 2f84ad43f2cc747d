import { patternOf } from '../redaction.ts';
import { readStoredObject } from '../stored.ts';

/** The value that identifies a person: an e-mail address, or an entry of the metadata of submissions. */
export type ErasureTarget = { kind: 'email'; email: string } | { kind: 'metadata'; key: string; value: string };

/** Copies outside the ledger, which an erasure does not change. */
export const NOT_COVERED = [
  'backups, replicas, and ledgers that a restore replaced; delete them, or erase the data in them, too',
  'jobs in Redis that no consumer or worker has taken yet',
  'receivers of events (webhooks, callbacks, channels, consumers, readers of the feed), which have their own copies',
  'exports of submissions and of the audit',
  'the upstream service and the services that track submissions',
];

/** Replaces a value in a text that is kept. */
export const ERASED = '[erased]';

/** Finds the value of a target in stored texts. */
export type PersonalValue = {
  /** Whether stored metadata is about the person. */
  isInMetadata(metadata: string): boolean;
  /** Whether a value of a metadata key, by which reports are grouped, identifies the person. */
  isGroup(key: string, value: string): boolean;
  /** Whether a text other than metadata contains the value. */
  isIn(text: string): boolean;
  /** Replaces the value in a text. An entry of metadata is never replaced, because other texts have fields of the same name. */
  redact(text: string): string;
  /** Matches the value anywhere in the bytes of a file, read as Latin-1. */
  bytes: RegExp;
};

export function personalValueOf(target: ErasureTarget): PersonalValue {
  return target.kind === 'email' ? emailValue(target.email) : metadataValue(target);
}

/** Characters of addresses. Such a character before the value shows that the value is the end of a longer address. Escapes are excluded. */
const NOT_WITHIN_BEFORE = '(?:(?<![\\w.+%-])|(?<=\\\\[bfnrt]|%[0-9a-f]{2}|\\\\u[0-9a-f]{4}))';
const NOT_WITHIN_AFTER = '(?![a-z0-9-]|\\.[a-z0-9])';

/** Finds an address in any case, also with characters escaped as in JSON, URLs or HTML, but not within a longer address. */
function emailValue(address: string): PersonalValue {
  const email = address.trim().toLowerCase();
  const { source } = patternOf(email);
  const whole = new RegExp(`${NOT_WITHIN_BEFORE}(?:${source})${NOT_WITHIN_AFTER}`, 'gi');
  // Almost all texts have no escapes, and need no pattern.
  const mayContain = (text: string) => /[\\%&]/.test(text) || text.toLowerCase().includes(email);
  const redact = (text: string) => (mayContain(text) ? text.replace(whole, ERASED) : text);
  const isIn = (text: string) => redact(text) !== text;
  return { isInMetadata: isIn, isGroup: (_key, text) => isIn(text), isIn, redact, bytes: new RegExp(source, 'gi') };
}

function metadataValue({ key, value }: { key: string; value: string }): PersonalValue {
  const isScalar = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/i.test(value);
  const forms = [JSON.stringify(value), ...(isScalar ? [value] : [])].map(literally);
  const source = `${literally(JSON.stringify(key))}:(?:${forms.join('|')})(?=[,}])`;
  const pattern = new RegExp(source);
  const bytes = new RegExp(Buffer.from(source).toString('latin1'), 'g');
  return {
    isInMetadata(metadata) {
      const found = readStoredObject(metadata);
      if (!found || !Object.hasOwn(found, key)) return false;
      const entry = found[key];
      return typeof entry !== 'object' || entry === null ? String(entry) === value : false;
    },
    isGroup: (groupedBy, text) => groupedBy === key && text === value,
    isIn: (text) => pattern.test(text),
    redact: (text) => text,
    bytes,
  };
}

/** Returns a pattern that matches only this text. */
function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
