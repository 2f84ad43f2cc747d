/** The header that sends the user and password of a URL (RFC 7617); none without them. */
export function basicAuthorization(url: URL): { authorization?: string } {
  if (url.username === '' && url.password === '') return {};
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  return { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
}

/**
 * Returns the password of a URL, or the user if there is no password: services take a token there.
 * Both also percent-encoded as in the URL, and together as Basic authorization sends them.
 */
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

/** Returns the text unchanged if it is not valid percent-encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
