const HEX_DIGITS = 32;

type ParsedId = { ok: true; submissionId: string } | { ok: false; error: string };

/** Parses a UUID with or without hyphens in any case. The error is the text of the upstream's 406 response. */
export function parseSubmissionId(given: string): ParsedId {
  const invalid = given.search(/[^0-9a-f-]/i);
  const digits = given.toLowerCase().replaceAll('-', '');
  if (invalid < 0 && digits.length === HEX_DIGITS) return { ok: true, submissionId: hyphenated(digits) };
  const at = invalid < 0 ? given.length : invalid;
  const found = given.charAt(at) || 'end of input';
  return { ok: false, error: `invalid character: expected [0-9a-fA-F-], found \`${found}\` at ${at + 1}` };
}

function hyphenated(digits: string): string {
  const groups = [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20)];
  return [...groups, digits.slice(20)].join('-');
}
