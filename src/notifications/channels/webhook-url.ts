import type { AddressGuard } from '../transport/address-guard.ts';

const MAX_CHARS = 2_048;
/** Other ports below 1024 are refused: they belong to services such as mail and SSH. */
const [HTTP_PORTS, MIN_OTHER_PORT] = [['443', '80'], 1_024];

type Rules = {
  /** Also allows http:// URLs, for receivers inside a network. */
  allowHttp: boolean;
  guard: AddressGuard;
};

/**
 * Returns why a webhook URL is not allowed, or undefined. Performs no I/O: the address guard checks
 * the addresses of a host name at each connection, because they may change.
 */
export function checkWebhookUrl(text: string, { allowHttp, guard }: Rules): string | undefined {
  if (text.length > MAX_CHARS) return `the URL has more than ${MAX_CHARS} characters`;
  // The parser ignores these characters, so the stored URL would differ from the used one.
  if (/[\s\p{Cc}]/u.test(text)) return 'the URL contains spaces or control characters';
  const url = URL.parse(text);
  if (!url) return 'it is not an absolute URL';
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
    return allowHttp
      ? 'the URL must begin with https:// or http://'
      : 'the URL must begin with https://';
  // The parser also accepts https:b.com and https:\\b.com; other parsers do not.
  if (!/^https?:\/\//i.test(text)) return 'the URL must have // after its protocol';
  // The parser reads it as a slash; other parsers would see another host.
  if (text.split('?', 1)[0]?.includes('\\')) return 'the URL must not have a backslash (\\)';
  // Checked in the text, because parsing drops an empty user name or fragment.
  if (url.username || url.password || authorityOf(text).includes('@'))
    return 'the URL must not contain a user name or a password';
  if (text.includes('#')) return 'the URL must not have a fragment (#)';
  if (url.port !== '' && !HTTP_PORTS.includes(url.port) && Number(url.port) < MIN_OTHER_PORT)
    return `the port must be ${HTTP_PORTS.join(', ')} or at least ${MIN_OTHER_PORT}`;
  return checkHost(url.hostname, guard);
}

function authorityOf(text: string): string {
  return text.replace(/^[^:]*:[/\\]*/, '').split(/[/\\?#]/, 1)[0] ?? '';
}

/** `host` as normalized by URL, with IPv6 addresses in brackets. */
function checkHost(host: string, guard: AddressGuard): string | undefined {
  if (host === '') return 'the URL has no host';
  const isAddress = host.startsWith('[') || /^[\d.]+$/.test(host);
  if (isAddress) {
    const reason = guard.check(host);
    return reason && `the URL is not allowed: ${reason}`;
  }
  if (
    /^(?:.*\.)?localhost\.?$/.test(host) &&
    !['127.0.0.1', '::1'].some((address) => !guard.check(address))
  )
    return 'the URL is not allowed: its host is this machine';
  return undefined;
}
