import type { AddressGuard } from '../transport/address-guard.ts';

const MAX_CHARS = 2_048;
/** The usual ones, besides those that need no privileges: below 1024 are mail, SSH and the like. */
const [USUAL_PORTS, MIN_OTHER_PORT] = [['443', '80'], 1_024];

type Rules = {
  /** For receivers inside a network. */
  allowHttp: boolean;
  guard: AddressGuard;
};

/**
 * Why events can't be sent to a URL, as far as that can be told without asking anybody; undefined: they can. What a name
 * resolves to is checked at each connection, because it may be another address by then.
 */
export function checkWebhookUrl(text: string, { allowHttp, guard }: Rules): string | undefined {
  if (text.length > MAX_CHARS) return `the URL has more than ${MAX_CHARS} characters`;
  // The parser passes over these, so that what is kept would not be what is used.
  if (/[\s\p{Cc}]/u.test(text)) return 'the URL has spaces or control characters';
  const url = URL.parse(text);
  if (!url) return 'it is no absolute URL';
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
    return allowHttp ? 'the URL must begin with https:// or http://' : 'the URL must begin with https://';
  // The parser takes https:b.com and https:\\b.com for it, others don't.
  if (!/^https?:\/\//i.test(text)) return 'the URL must have // after its protocol';
  // A slash to the parser, and to others not: they would see another host.
  if (text.split('?', 1)[0]?.includes('\\')) return 'the URL must not have a backslash (\\)';
  // Said of the text: an empty user name or fragment is gone once parsed.
  if (url.username || url.password || authorityOf(text).includes('@'))
    return 'the URL must not hold a user name or a password';
  if (text.includes('#')) return 'the URL must not have a fragment (#)';
  if (url.port !== '' && !USUAL_PORTS.includes(url.port) && Number(url.port) < MIN_OTHER_PORT)
    return `the port must be ${USUAL_PORTS.join(', ')} or from ${MIN_OTHER_PORT} up`;
  return checkHost(url.hostname, guard);
}

function authorityOf(text: string): string {
  return text.replace(/^[^:]*:[/\\]*/, '').split(/[/\\?#]/, 1)[0] ?? '';
}

/** `host` as URL writes it: addresses in their usual spelling, those of v6 in brackets. */
function checkHost(host: string, guard: AddressGuard): string | undefined {
  if (host === '') return 'the URL has no host';
  const isAddress = host.startsWith('[') || /^[\d.]+$/.test(host);
  if (isAddress) {
    const reason = guard.check(host);
    return reason && `the URL can't be used: ${reason}`;
  }
  if (/^(?:.*\.)?localhost\.?$/.test(host) && !['127.0.0.1', '::1'].some((address) => !guard.check(address)))
    return "the URL can't be used: its host is this machine";
  return undefined;
}
