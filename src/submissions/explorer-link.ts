/** Fields of the upstream's `data` that the link to a block explorer may contain in braces. */
const LINK_PLACEHOLDERS = ['block_number', 'block_hash', 'tx_hash', 'tx_index'] as const;

/** Returns the link for `data`; undefined if a value of the template is missing in them. */
export function explorerLink(
  template: string,
  data: Record<string, unknown> | null,
): string | undefined {
  let isComplete = true;
  const link = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = data?.[name];
    isComplete &&= (typeof value === 'string' && value !== '') || typeof value === 'number';
    return encodeURIComponent(String(value).toWellFormed());
  });
  return isComplete ? link : undefined;
}

export function templateProblem(template: string): string | undefined {
  const names = [...template.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const placeholders = LINK_PLACEHOLDERS.map((name) => `{${name}}`).join(', ');
  if (names.some((name) => !LINK_PLACEHOLDERS.some((known) => known === name)))
    return `must use only the placeholders ${placeholders}`;
  if (names.length === 0) return 'must contain a placeholder such as {block_hash}';
  const url = URL.parse(template.replaceAll(/\{[^{}]*\}/g, '0'));
  if (!url || !/^https?:\/\/[^/?#{}]+[/?#]/.test(template) || /[\s{}]/.test(unbraced(template)))
    return 'must be an http:// or https:// address with placeholders after its host';
  return template.includes('@') ? 'must be an address without a user and a password' : undefined;
}

function unbraced(template: string): string {
  return template.replaceAll(/\{[^{}]*\}/g, '');
}
