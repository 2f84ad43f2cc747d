const HEX_DIGITS = 32;

type ParsedId = { ok: true; submissionId: string } | { ok: false; error: string };

/** Reads a UUID with or without hyphens, in any case; the error text is the one the upstream gives with its 406. */
export function parseSubmissionId(given: string): ParsedId {
  const strange = given.search(/[^0-9a-f-]/i);
  const digits = given.toLowerCase().replaceAll('-', '');
  if (strange < 0 && digits.length === HEX_DIGITS) return { ok: true, submissionId: hyphenated(digits) };
  const at = strange < 0 ? given.length : strange;
  const found = given.charAt(at) || 'end of input';
  return { ok: false, error: `invalid character: expected [0-9a-fA-F-], found \`${found}\` at ${at + 1}` };
}

function hyphenated(digits: string): string {
  const groups = [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20)];
  return [...groups, digits.slice(20)].join('-');
}
