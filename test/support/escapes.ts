import fc from 'fast-check';

const hex = (unit: number) => unit.toString(16).padStart(4, '0');

/** One character within a JSON string, in one of the spellings that JSON allows. */
function inJson(char: string, way: number): string {
  const code = hex(char.charCodeAt(0));
  if (way === 0) return `\\u${code}`;
  if (way === 1) return `\\u${code.toUpperCase()}`;
  if (way === 2 && '"\\/'.includes(char)) return `\\${char}`;
  return JSON.stringify(char).slice(1, -1);
}

/**
 * A text within a JSON string, each of its characters escaped at random; possibly with nested JSON.
 */
export function escapedIn(text: string): fc.Arbitrary<string> {
  const ways = fc.array(fc.integer({ min: 0, max: 5 }), {
    minLength: text.length,
    maxLength: text.length,
  });
  const once = ways.map((each) =>
    Array.from(text, (char, at) => inJson(char, each[at] ?? 5)).join(''),
  );
  const twice = once.chain((inner) => {
    const ways = fc.array(fc.integer({ min: 2, max: 9 }), {
      minLength: inner.length,
      maxLength: inner.length,
    });
    return ways.map((each) =>
      Array.from(inner, (char, at) => inJson(char, each[at] ?? 9)).join(''),
    );
  });
  const percent = (char: string) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return fc.oneof(
    { weight: 4, arbitrary: once },
    { weight: 2, arbitrary: twice },
    fc.constant(JSON.stringify(encodeURIComponent(text)).slice(1, -1)),
    fc.constant(Array.from(text, percent).join('')),
    fc.string({ maxLength: 5 }).map((user) => Buffer.from(`${user}:${text}`).toString('base64')),
    fc.string({ maxLength: 5 }).map((user) => Buffer.from(`${user}:${text}`).toString('base64url')),
  );
}

/** Printable ASCII with more than hexadecimal digits, because responses are full of hashes. */
export const secretText: fc.Arbitrary<string> = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 12,
    maxLength: 40,
  })
  .filter((text) => /[^0-9a-f]/i.test(text) && new Set(text).size > 4);

/** Returns whether the secret can be read after unescaping the text several times. */
export function reveals(text: string, secret: string): boolean {
  const texts = new Set([text]);
  for (let round = 0; round < 4; round += 1)
    for (const one of [...texts]) for (const next of decoded(one)) texts.add(next);
  return [...texts].some((one) => one.includes(secret));
}

function decoded(text: string): string[] {
  const json = text.replace(
    /\\(?:u([0-9a-f]{4})|(["\\/]))/gi,
    (_all, code: string | undefined, char: string) =>
      code ? String.fromCharCode(Number.parseInt(code, 16)) : char,
  );
  const url = text.replace(/%([0-9a-f]{2})/gi, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  const base64 = (text.match(/[\w+/-]{12,}/g) ?? []).map((run) =>
    Buffer.from(run, 'base64').toString('latin1'),
  );
  return [json, url, ...base64];
}
