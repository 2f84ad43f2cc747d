/** The header that sends the user and password of a URL (RFC 7617); none without them. */
export function basicAuthorization(url: URL): { authorization?: string } {
  if (url.username === '' && url.password === '') return {};
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  return { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
}

/** The password, or else the user: services take tokens there. In each encoding that is sent. */
export function secretsOfLogin({ username, password }: URL): string[] {
  if (username === '' && password === '') return [];
  const secret = password || username;
  return [secret, decoded(secret), `${decoded(username)}:${decoded(password)}`];
}

/** Returns the values of a URL's query: services take a key there. */
export function secretsOfQuery({ search, searchParams }: URL): string[] {
  const raw = search
    .slice(1)
    .split('&')
    .map((pair) => pair.slice(pair.indexOf('=') + 1));
  return [...new Set([...raw, ...searchParams.values()])].filter((value) => value !== '');
}

/** Returns the parts of a URL's path that may be keys: of 16 characters or more. */
export function secretsOfPath({ pathname }: URL): string[] {
  return pathname
    .split('/')
    .filter((part) => part.length >= 16)
    .flatMap((part) => [part, decoded(part)]);
}

/** Returns the text unchanged if it is not percent-encoded correctly. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Another value of these would break the request or have no effect. */
const RESERVED: readonly string[] = [
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
];

const MAX_HEADERS = 20;
const MAX_VALUE_CHARS = 4_096;
/** A token of RFC 9110 without the dot, which separates the names of settings. */
const NAME = /^[\w!#$%&'*+^`|~-]{1,100}$/;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** The reason does not contain the value. `reserved`: further names, in lower case. */
export function headerProblem(
  headers: Record<string, string>,
  reserved: readonly string[],
): { name: string; reason: string } | undefined {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  for (const [index, [name, value]] of Object.entries(headers).entries()) {
    const lower = name.toLowerCase();
    const because = (reason: string) => ({ name, reason });
    if (!NAME.test(name)) return because('must be the name of a header, without dots');
    if (RESERVED.includes(lower) || reserved.includes(lower))
      return because('must be another header: dawatch sets this one itself');
    if (names.indexOf(lower) !== index) return because('must not be set twice');
    if (value.length > MAX_VALUE_CHARS)
      return because(`must have at most ${MAX_VALUE_CHARS} characters`);
    if (!VALUE.test(value))
      return because('must be printable ASCII without line breaks and spaces at its ends');
    if (index >= MAX_HEADERS) return because(`must not be there: at most ${MAX_HEADERS} headers`);
  }
  return undefined;
}

/** Returns what to mask in responses, which may quote a header: the value, and its credential. */
export function secretsOfHeaders(headers: Record<string, string>): string[] {
  return Object.values(headers).flatMap((value) => [
    value,
    ...value.split(' ').filter((part) => part !== value),
  ]);
}
